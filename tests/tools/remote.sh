# SPDX-License-Identifier: Apache-2.0
# Other hosts, by an ssh that runs the far side here with an empty environment.
. "$(dirname "$0")/lib.sh"

mkdir fake && cat >fake/ssh <<'END'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
case $host in
down) echo "ssh: connect to host down port 22: No route to host" >&2; exit 255 ;;
bare) exec env -i PATH=/usr/bin:/bin sh -c "echo 'sh: 1: ringrun: not found' >&2; exit 127" ;;
silent) exit 255 ;;
mute*) exec sleep 100 ;;
esac
echo "Welcome to $host"
cd / && env -i PATH=/usr/bin:/bin THE_HOST="$host" sh -c "$*"
END
chmod +x fake/ssh
PATH=$work/fake:$PATH

run "$ringrun" -H a,b:2 sh -c 'echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $CROSS_RANK/$CROSS_SIZE $THE_HOST $OMP_NUM_THREADS; echo e$RANK >&2'
equal "exit code" 0 "$code"
equal "ranks of two hosts" "0/3 0/1 0/2 a 1
[1] 1/3 0/2 1/2 b 1
[2] 2/3 1/2 1/2 b 1" "$(sort "$work/out")"
equal "their errors" "[1] e1
[2] e2
e0" "$(sort "$work/err")"
run "$ringrun" -H a,b sh -c 'pwd; echo $MASTER_ADDR:$MASTER_PORT'
equal "same folder everywhere" 2 "$(grep -c "$work\$" "$work/out")"
has "an address, not a name that only ssh knows" "$out" '^[0-9a-f.:]+:29500$'
equal "one address for all" 1 "$(grep 29500 "$work/out" | sed 's/^\[1\] //' | sort -u | wc -l)"
run "$ringrun" -H localhost,b -n 4 sh -c 'echo $RANK $LOCAL_RANK ${THE_HOST-here}'
equal "this host and another" "0 0 here
[1] 1 1 here
[2] 2 0 b
[3] 3 1 b" "$(sort "$work/out")"
run env RING_ALGO=ring NCCL_DEBUG=WARN OTHER=1 MINE=2 "$ringrun" -H a -x MINE -x "QUOTED=it's \$HOME" \
    sh -c 'echo "$RING_ALGO $NCCL_DEBUG ${OTHER-none} $MINE $QUOTED"'
equal "variables that go along" "ring WARN none 2 it's \$HOME" "$out"

mkdir home
printf '# of DeepSpeed\n\nOTHER=of home = 1\nMINE=of home\r\n' >home/.deepspeed_env
printf 'MINE=of here\nRING_ALGO=tree\nGIVEN=by a file\n' >.deepspeed_env
run env HOME="$work/home" RING_ALGO=ring "$ringrun" -H a -x GIVEN=by-option \
    sh -c 'echo "$OTHER, $MINE, $RING_ALGO, $GIVEN"'
equal "variables of .deepspeed_env" "of home = 1, of here, tree, by-option" "$out"
equal "which are told" "ringrun: all ranks get 2 variables from $work/home/.deepspeed_env
ringrun: all ranks get 3 variables from .deepspeed_env" "$err"
run env HOME="$work" "$ringrun" -H a sh -c 'echo $MINE'
equal "one file is read once" "ringrun: all ranks get 3 variables from .deepspeed_env" "$err"
run env HOME="$work/home" DS_ENV_FILE=named "$ringrun" -H a true
equal "no such file" "2 ringrun: cannot read named: No such file or directory" "$code $err"
echo MASTER_PORT=1 >named
run env HOME="$work/home" DS_ENV_FILE=named "$ringrun" -H a true
has "a variable of the launcher's" "$err" '^ringrun: named:1: ringrun sets this variable itself'
printf 'A=1\nnot a variable\n' >named
run env HOME="$work/home" DS_ENV_FILE=named "$ringrun" -H a true
equal "no variable" "2 ringrun: named:2: expected NAME=VALUE" "$code $err"
rm .deepspeed_env
run "$ringrun" -H a printf '%s|' "two words" "it's" '$HOME' 'a;b' '*'
equal "arguments meet no shell" "two words|it's|\$HOME|a;b|*|" "$out"
echo "a line for rank 0" >input
"$ringrun" -H a,b sh -c 'cat; echo end' <input >"$work/out"
has "standard input over ssh" "$(cat "$work/out")" '^a line for rank 0$'
has "its end" "$(cat "$work/out")" '^\[1\] end$'
head -c 2000000 /dev/urandom >random
"$ringrun" -H a cat <random | cmp - random || wrong "2 MB through ssh and back were changed"
run sh -c "sleep 1 | '$ringrun' -H a,b true"
equal "input that nobody reads" 0 "$code"

run "$ringrun" -H a,b:2 sh -c 'if [ $RANK = 2 ]; then exit 7; fi; sleep $0 & wait' "$tag"
equal "exit code from afar" 7 "$code"
has "host in the message" "$err" '^ringrun: rank 2 on host b \(pid [0-9]+\) ended with exit code 7; stopping the other 2$'
equal "one message" 1 "$(grep -c . "$work/err")"
run "$ringrun" -H a,b sh -c 'trap "" TERM; if [ $RANK = 0 ]; then kill -9 $$; fi; while :; do sleep $0; done' "$tag"
equal "killed afar" 137 "$code"
has "killed afar" "$err" '^ringrun: rank 0 on host a .*signal 9'
gone "ranks afar"

run "$ringrun" -H a no_such_program
equal "program not found afar" 127 "$code"
has "program not found afar" "$err" "rank 0 on host a .*'no_such_program'"
run "$ringrun" -H a,down true
equal "host that is down" 255 "$code"
has "host that is down" "$err" "on host down .*No route to host.*'ssh down true'"
equal "host that is down: one message" 1 "$(grep -c . "$work/err")"
run "$ringrun" -H silent true
equal "host that says nothing" 255 "$code"
run env RING_INIT_TIMEOUT=4 "$ringrun" -H a,mute,mute2 true
equal "hosts that never answer" 255 "$code"
has "hosts that never answer" "$err" '^ringrun: no answer within 4 s from mute, mute2: .*RING_INIT_TIMEOUT'
equal "hosts that never answer: one message" 1 "$(grep -c . "$work/err")"
run "$ringrun" -H a -x RING_INIT_TIMEOUT=soon true
equal "a wrong time-out" 2 "$code"
run "$ringrun" -H bare true
equal "host without ringrun" 127 "$code"
has "host without ringrun" "$err" 'install libring'
run "$ringrun" -H a --remote-ringrun /no/such/ringrun true
equal "wrong path there" 127 "$code"

# start SCRIPT: in the background on two hosts
start() {
    : >"$work/out"
    "$ringrun" -H a,b sh -c "$1" "$tag" >"$work/out" 2>"$work/err" </dev/null &
    job=$!
    appears '^up' "$work/out"
    appears '^\[1\] up' "$work/out"
}
start 'trap "echo saved; exit 0" INT; echo up; while :; do sleep 0.05; done'
kill -INT $job
wait $job
equal "Ctrl-C" 130 $?
has "Ctrl-C reaches ranks afar" "$(cat "$work/out")" '^\[1\] saved$'
for second in INT TERM; do
    start 'trap "" INT TERM; echo up; while :; do sleep $0; done'
    kill -INT $job
    appears 'second signal' "$work/err"
    kill -$second $job
    wait $job
    equal "Ctrl-C and SIG$second" 130 $?
    has_not "the second one does not wait" "$(cat "$work/err")" 'kill-wait'
    gone "ranks afar after Ctrl-C and SIG$second"
done
start 'if [ $RANK = 1 ]; then echo up; sleep $0; fi
    trap "sleep 2.5; echo saved; exit 0" TERM; echo up; while :; do sleep 0.05; done'
kill -TERM $job
wait $job
equal "SIGTERM" 143 $?
has "who saves afar is waited for" "$(cat "$work/out")" '^saved$'
"$ringrun" -H a,b sh -c 'if [ $RANK = 0 ]; then printf "name? "; fi; sleep $0' "$tag" >prompt 2>/dev/null &
job=$!
appears '^name\? $' prompt
kill $job
wait $job
start 'echo up; sleep $0 & wait'
disown $job
kill -9 $job
gone "ranks afar when ringrun was killed"
start 'echo up; sleep $0 & wait'
pkill -9 -P $job -f 'fake/ssh.* b '
wait $job
equal "a connection that breaks" 255 $?
has "a connection that breaks" "$(cat "$work/err")" 'rank 1 on host b was lost: the connection'
gone "ranks of both ends"
"$ringrun" -H a,b sh -c 'while echo y; do :; done' "$tag" 2>/dev/null | head -n 2 >/dev/null
gone "writers afar without a reader"
finish
