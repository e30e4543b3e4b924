# SPDX-License-Identifier: Apache-2.0
# Signals that reach ringrun.
. "$(dirname "$0")/lib.sh"

# start SCRIPT: runs it on 2 ranks in the background, waits until both are up
start() {
    : >"$work/out"
    "$ringrun" -n 2 sh -c "$1" "$tag" >"$work/out" 2>"$work/err" </dev/null &
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

# One rank dies of Ctrl-C, the other ignores it: it is stopped all the same.
start 'if [ $RANK = 1 ]; then trap "" INT; fi; echo up; sleep $0; sleep $0'
stop INT
equal "exit code when one ignores Ctrl-C" 130 "$code"
below "time when one ignores Ctrl-C" 2000 "$took"
gone "ranks after Ctrl-C"

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
