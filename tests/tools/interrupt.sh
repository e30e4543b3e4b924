# SPDX-License-Identifier: Apache-2.0
# Signals that reach ringrun.
. "$(dirname "$0")/lib.sh"

# start SCRIPT [OPTION...]: runs it on 2 ranks in the background, waits until both are up
start() {
    local script=$1
    shift
    : >"$work/out"
    "$ringrun" -n 2 "$@" sh -c "$script" "$tag" >"$work/out" 2>"$work/err" </dev/null &
    job=$!
    appears '^up' "$work/out"
    appears '^\[1\] up' "$work/out"
}

# stop SIGNAL: sends it; the exit code is in $code, the milliseconds in $took
stop() {
    local begin
    begin=$(date +%s%N)
    kill -"$1" $job
    wait $job
    code=$?
    took=$((($(date +%s%N) - begin) / 1000000))
}

start 'trap "echo saved; exit 0" INT; echo up; while :; do sleep 0.05; done'
stop INT
equal "exit code after Ctrl-C" 130 "$code"
has "ranks may save their work" "$(cat "$work/out")" '^saved$'
has "all of them" "$(cat "$work/out")" '^\[1\] saved$'

start 'echo up; sleep $0'
stop TERM
equal "exit code after SIGTERM" 143 "$code"
below "time after SIGTERM" 1000 "$took"
gone "ranks after SIGTERM"

start 'trap "" INT TERM; echo up; sleep $0 & while :; do sleep $0; done'
kill -INT $job
appears 'once more' "$work/err"
sleep 0.2
kill -0 $job || wrong "ended at the first Ctrl-C though ranks go on"
stop INT
equal "exit code after the second Ctrl-C" 130 "$code"
below "time after the second Ctrl-C" 500 "$took"
gone "ranks after the second Ctrl-C"

start 'trap "echo usr1" USR1; echo up; for i in $(seq 20); do sleep 0.05; done'
kill -USR1 $job
wait $job
equal "a passed signal does not end the job" 0 $?
has "it reaches the ranks" "$(cat "$work/out")" '^\[1\] usr1$'

# One rank dies of Ctrl-C, the other ignores it: it is killed all the same, in time.
start 'if [ $RANK = 1 ]; then trap "" INT; fi; echo up; sleep $0; sleep $0' --kill-wait 1
stop INT
equal "exit code when one ignores Ctrl-C" 130 "$code"
below "time when one ignores Ctrl-C" 2000 "$took"
has "what happened is said" "$(cat "$work/err")" '^ringrun: what still ran 1 s after SIGINT was killed'
gone "ranks after Ctrl-C"

# One rank dies of it, the other has more to do: it may.
saving='trap "sleep 2.5; echo saved; exit 0" TERM INT; echo up; while :; do sleep 0.05; done'
start 'if [ $RANK = 1 ]; then echo up; sleep $0; fi; '"$saving"
stop TERM
equal "exit code when one saves its work" 143 "$code"
has "who saves is waited for" "$(cat "$work/out")" '^saved$'
below "and no longer" 4500 "$took"

# A shell dies of SIGTERM before the program that it runs.
start "sh -c '$saving'; true"
stop TERM
equal "exit code when a shell runs the program" 143 "$code"
equal "who saves under a shell is waited for" 2 "$(grep -Ec '^(\[1\] )?saved$' "$work/out")"

# timeout(1) signals its child, and then the group.
start "$saving"
kill -TERM $job
sleep 0.01
stop TERM
equal "a signal that comes twice at once is one" 2 "$(grep -Ec '^(\[1\] )?saved$' "$work/out")"

# Output that nobody takes: a signal says that nobody will.
mkfifo full
sleep "$tag" <full &
reader=$!
"$ringrun" -n 1 seq 1 80000 >full 2>"$work/err" </dev/null &
job=$!
sleep 0.7
kill -0 $job || wrong "ended though its output was not taken"
(sleep 3; kill -9 $job 2>/dev/null) &
stop TERM
equal "exit code when output is dropped" 143 "$code"
below "time to drop output" 1000 "$took"
kill $reader

start 'echo up; sleep $0'
sleep 0.2
kill -TSTP $job
sleep 0.3
equal "Ctrl-Z stops ringrun" T "$(ps -o state= -p $job | tr -d ' ')"
equal "Ctrl-Z stops the ranks" 2 "$(pgrep -f "^sleep $tag" | xargs -n1 ps -o state= -p | grep -c T)"
kill -CONT $job
sleep 0.2
equal "they go on together" 2 "$(pgrep -f "^sleep $tag" | xargs -n1 ps -o state= -p | grep -c S)"
stop TERM
equal "exit code at last" 143 "$code"

: >"$work/out"
nohup "$ringrun" -n 1 sh -c 'echo up; sleep 0.6; echo end' >"$work/out" 2>/dev/null </dev/null &
job=$!
appears '^up' "$work/out"
kill -HUP $job
wait $job
equal "nohup is respected" 0 $?
finish
