# SPDX-License-Identifier: Apache-2.0
# How jobs end: exit codes, one message, nobody left.
. "$(dirname "$0")/lib.sh"

run "$ringrun" -n 3 true
equal "all well" 0 "$code"
equal "nothing to say" "" "$out$err"

run "$ringrun" -n 3 sh -c 'if [ $RANK = 1 ]; then exit 3; fi; sleep $0' "$tag"
equal "exit code of the failing rank" 3 "$code"
equal "one message" 1 "$(grep -c . "$work/err")"
has "message" "$err" "^ringrun: rank 1 on host $(hostname) \\(pid [0-9]+\\) ended with exit code 3; stopping the other 2\$"
gone "sleepers"

run "$ringrun" -n 3 sh -c 'if [ $RANK = 1 ]; then printf "a layer\nno such layer\n\n" >&2; : >told; exit 3; fi
    while [ ! -e told ]; do :; done; sleep 0.05; echo lost; sleep $0' "$tag"
has "its last line, that is not empty" "$err" "^ringrun: rank 1 .* code 3; stopping the other 2; its last line: no such layer\$"
run "$ringrun" -n 2 sh -c 'if [ $RANK = 1 ]; then echo "no such layer" >&2; exit 3; fi; sleep $0' "$tag"
has "not once more" "$err" "^ringrun: rank 1 .* code 3; stopping the other 1\$"
run "$ringrun" -n 3 sh -c 'echo "no such layer" >&2; if [ $RANK = 1 ]; then : >also; exit 3; fi
    while [ ! -e also ]; do :; done; sleep $0' "$tag"
has "nor where all wrote the same" "$err" "^ringrun: rank 1 .* code 3; stopping the other 2\$"
gone "sleepers"

for signal in KILL SEGV TERM; do
    run "$ringrun" -n 3 sh -c 'if [ $RANK = 2 ]; then kill -'$signal' $$; fi; sleep $0' "$tag"
    equal "exit code after SIG$signal" $((128 + $(kill -l $signal))) "$code"
    has "message after SIG$signal" "$err" "^ringrun: rank 2 on host .* was killed by signal $(kill -l $signal) \\(SIG$signal"
    equal "one message after SIG$signal" 1 "$(grep -c . "$work/err")"
done
gone "sleepers"

# Ranks that ignore SIGTERM, with children that ignore it, in the group and out of it.
run "$ringrun" -n 2 sh -c 'trap "" TERM
    if [ $RANK = 1 ]; then exit 9; fi
    sleep $0 & (setsid sleep $0 &) ; while :; do sleep $0; done' "$tag"
equal "stubborn ranks" 9 "$code"
gone "stubborn ranks and grandchildren"

# Survivors have a second to report.
quickly "no waiting when all are gone" 900 \
    "$ringrun" -n 2 sh -c 'if [ $RANK = 1 ]; then exit 4; fi; sleep 0.1; echo reported; exit 1'
equal "the first failure counts" 4 "$code"
has "report of a survivor" "$out" '^reported$'

# The others fail because one was killed: the killed one is named, if that is known soon after.
for turn in 1 2 3 4 5; do
    rm -f failed
    run "$ringrun" -n 3 sh -c 'case $RANK in
        0) sleep 0.1; : >failed; exit 1 ;;
        2) while [ ! -e failed ]; do :; done; kill -9 $$ ;;
        esac; sleep $0' "$tag"
    [ "$code" != 137 ] || break
done
equal "the cause is the killed rank" 137 "$code"
has "the cause is the killed rank" "$err" '^ringrun: rank 2 '

run "$ringrun" -n 3 sh -c 'sleep 0.$((RANK * 2)); exit 0'
equal "ranks may finish one by one" 0 "$code"

run "$ringrun" -n 2 no_such_program --option
equal "program not found" 127 "$code"
has "program not found" "$err" "'no_such_program': No such file or directory"
equal "program not found: one message" 1 "$(grep -c . "$work/err")"
run "$ringrun" -n 2 ./missing
equal "path not found" 127 "$code"
has "path not found" "$err" "'\\./missing'"
echo data >plain && run "$ringrun" -n 2 ./plain
equal "not executable" 127 "$code"
has "not executable" "$err" "'\\./plain'.*chmod \\+x"
printf '#!/no/such/interpreter\n' >script && chmod +x script && run "$ringrun" -n 3 ./script
equal "no interpreter" 127 "$code"
has "no interpreter" "$err" "rank 0 .*'\\./script'"
printf 'exit 6\n' >bare && chmod +x bare && run "$ringrun" -n 1 ./bare
equal "a script without #! is for sh" 6 "$code"

# More ranks than this user may start: an error, and nobody left.
(ulimit -n 64 && "$ringrun" -n 100 sleep "$tag" 2>"$work/err")
equal "too few descriptors" 3 $?
has "too few descriptors" "$(cat "$work/err")" 'could not start .*ulimit -n'
gone "ranks that had started"
(ulimit -Sn 64 && "$ringrun" -n 100 sh -c 'ulimit -Sn' >"$work/out")
equal "a soft limit is raised for us" 0 $?
equal "and stays as it was for the ranks" 100 "$(grep -c '64$' "$work/out")"

# Processes that an ended rank leaves running may finish their line, but not stay.
run "$ringrun" -n 2 bash -c 'echo through tee $RANK > >(while [ -e /proc/$$/exe ]; do :; done; cat)'
has "output of a process substitution" "$out" '^\[1\] through tee 1$'
run "$ringrun" -n 2 sh -c 'sleep $0 & (setsid sleep $0 &)' "$tag"
equal "ranks with leftovers" 0 "$code"
gone "leftovers"

# No zombies while the job goes on.
job_zombies() { [ -e left ] && ps -o stat= --ppid $job | grep -c '^Z'; }
"$ringrun" -n 3 sh -c 'if [ $RANK = 2 ]; then (sh -c "sleep 0.1; : >left" &) ; exit 0; fi
    while [ ! -e counted ]; do sleep 0.05; done' &
job=$!
becomes "zombies" 0 job_zombies
: >counted
wait $job

# Processes that a shell left running when it became ringrun belong to the user.
bash -c 'exec "$0" -n 1 seq 1 100000 > >(sleep 0.3; gzip -c >log.gz)' "$ringrun"
equal "a filter of the shell: exit code" 0 $?
lines() { zcat log.gz 2>/dev/null | wc -l; }
becomes "a filter of the shell gets everything" 100000 lines
run sh -c 'sleep "$1" & echo $! >child; exec "$0" -n 1 true' "$ringrun" "$tag"
equal "nobody waits for a child of the shell" 0 "$code"
kill "$(cat child)" || wrong "a child of the shell was ended"
run sh -c '(sleep "$1" & echo $! >orphan; sleep 0.3) & exec "$0" -n 1 sh -c "
    while [ ! -s orphan ]; do sleep 0.05; done; sleep 0.6"' "$ringrun" "$tag"
kill "$(cat orphan)" || wrong "an orphan of a child of the shell was ended"
gone "children of the shell"

# kill -9 of ringrun itself.
"$ringrun" -n 2 sh -c 'sleep $0 & echo up; wait' "$tag" >victims &
victim=$!
disown $victim
appears '^up' victims
appears '^\[1\] up' victims
kill -9 $victim
wait $victim 2>/dev/null
gone "ranks and grandchildren of a killed ringrun"
finish
