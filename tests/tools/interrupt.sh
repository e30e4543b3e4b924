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

# stop SIGNAL: sends it; the exit code is in $code: 137 if it does not end
stop() {
    local guard
    (sleep $patience; kill -9 $job) 2>/dev/null &
    guard=$!
    kill -"$1" $job
    wait $job
    code=$?
    { pkill -P $guard; kill $guard; wait $guard; } 2>/dev/null
}
# So long that stop() ends it, if it is waited for that.
forever='--kill-wait 600'

start 'trap "echo saved; exit 0" INT; echo up; while :; do sleep 0.05; done'
stop INT
equal "exit code after Ctrl-C" 130 "$code"
has "ranks may save their work" "$(cat "$work/out")" '^saved$'
has "all of them" "$(cat "$work/out")" '^\[1\] saved$'

start 'echo up; sleep $0' $forever
stop TERM
equal "exit code after SIGTERM" 143 "$code"
gone "ranks after SIGTERM"

# The second signal kills, whatever it is and however soon after the first one it comes.
second() { # FIRST SECOND SECONDS-BETWEEN
    start 'trap "" INT TERM HUP; echo up; sleep $0 & while :; do sleep $0; done' $forever
    kill -$1 $job
    appears 'second signal' "$work/err"
    sleep $3
    kill -0 $job || wrong "ended at the first SIG$1 though ranks go on"
    stop $2
    equal "exit code after SIG$1 and SIG$2, $3 s apart" $((128 + $(kill -l $1))) "$code"
    gone "ranks after SIG$1 and SIG$2, $3 s apart"
}
second INT INT 0
second INT INT 0.1
second INT INT 1.1
second TERM TERM 0.1
second INT TERM 0
second HUP INT 0.1

start 'trap "echo usr1; got=1" USR1; echo up; while [ -z "$got" ]; do sleep 0.05; done; exit 0'
kill -USR1 $job
wait $job
equal "a passed signal does not end the job" 0 $?
has "it reaches the ranks" "$(cat "$work/out")" '^\[1\] usr1$'

# One rank dies of Ctrl-C, the other ignores it: it is killed all the same, in time.
start 'if [ $RANK = 1 ]; then trap "" INT; fi; echo up; sleep $0; sleep $0' --kill-wait 1
stop INT
equal "exit code when one ignores Ctrl-C" 130 "$code"
has "what happened is said" "$(cat "$work/err")" '^ringrun: killed the processes that still ran 1 s after SIGINT'
gone "ranks after Ctrl-C"

# One rank dies of it, the other has more to do: it may.
saving='trap "sleep 2.5; echo saved; exit 0" TERM INT; echo up; while :; do sleep 0.05; done'
start 'if [ $RANK = 1 ]; then echo up; sleep $0; fi; '"$saving" $forever
stop TERM
equal "exit code when one saves its work" 143 "$code"
has "who saves is waited for" "$(cat "$work/out")" '^saved$'

# A shell dies of SIGTERM before the program that it runs.
start "sh -c '$saving'; true"
stop TERM
equal "exit code when a shell runs the program" 143 "$code"
equal "who saves under a shell is waited for" 2 "$(grep -Ec '^(\[1\] )?saved$' "$work/out")"

# timeout(1) signals its child, then the group, and then continues both. On a busy machine that may
# take longer than ringrun waits for it.
for turn in $(seq 5); do
    : >"$work/out"
    timeout $patience "$ringrun" $forever -n 2 sh -c "$saving" "$tag" \
        >"$work/out" 2>"$work/err" </dev/null &
    job=$!
    appears '^up' "$work/out"
    appears '^\[1\] up' "$work/out"
    stop TERM
    saved=$(grep -Ec '^(\[1\] )?saved$' "$work/out")
    [ "$saved" != 2 ] || break
done
equal "the signals of one timeout are one request" 2 "$saved"

# Output that nobody takes: a signal says that nobody will.
mkfifo full
sleep "$tag" <full &
reader=$!
"$ringrun" $forever -n 1 sh -c 'seq 1 80000; : >written' >full 2>"$work/err" </dev/null &
job=$!
written() { [ -e written ] && ps -o stat=,args= --ppid $job | grep -c 'sh -c'; }
becomes "the rank has ended" 0 written
kill -0 $job || wrong "ended though its output was not taken"
stop TERM
equal "exit code when output is dropped" 143 "$code"
kill $reader

job_state() { ps -o state= -p $job | tr -d ' '; }
sleepers() { pgrep -f "^sleep $tag" | xargs -n1 ps -o state= -p | grep -c "$1"; }
start 'echo up; exec sleep $0'
becomes "sleeping ranks" 2 sleepers S
kill -TSTP $job
becomes "Ctrl-Z stops ringrun" T job_state
becomes "Ctrl-Z stops the ranks" 2 sleepers T
kill -CONT $job
becomes "they go on together" 2 sleepers S
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
