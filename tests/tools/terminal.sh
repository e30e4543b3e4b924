# SPDX-License-Identifier: Apache-2.0
# At a terminal: rank 0 has it, the keyboard reaches rank 0, Ctrl-C reaches all.
. "$(dirname "$0")/lib.sh"

command -v script >/dev/null || { echo "SKIPPED: no script(1) to make a terminal with"; exit 77; }

# typed TEXT COMMAND: runs it at a terminal where TEXT is typed after a while, and not before each
# rank that is to have made a file ready.RANK has, nor before $said, if it is set, is on the terminal
typed() {
    { sleep 0.4; [ -z "${said-}" ] || appears "$said" "$work/out"; for rank in 0 1; do
        case $2 in *ready*) becomes "rank $rank is ready" yes ready $rank ;; esac
    done; printf "$1"; sleep 0.3; } | script -qec "$2" /dev/null >"$work/out" 2>&1
    code=$?
    out=$(tr -d '\r' <"$work/out")
}

ready() { [ -e "ready.$1" ] && echo yes; }

typed '' "$ringrun -n 2 sh -c 'for i in 1 2; do [ -t \$i ] && echo \$RANK has \$i; done; :'"
equal "rank 0 has the terminal, the others not" "0 has 1
0 has 2" "$out"
typed '' "$ringrun -n 2 --tag-output sh -c '[ -t 1 ] && echo terminal; echo end'"
has_not "what is tagged passes through us" "$out" 'terminal'
typed 'by hand\n' "$ringrun -n 2 sh -c 'read line; echo \$RANK got \$line'"
has "the keyboard is rank 0's" "$out" '^0 got by hand$'
has "nobody else's" "$out" '^\[1\] 1 got ?$'
typed 'one\n\004' "$ringrun -n 1 cat"
has "end of input from the keyboard" "$out" '^one$'
equal "end of input from the keyboard" 0 "$code"
# Only the group in front may have the terminal; ranks are not, and must not stop for it.
limit="timeout --foreground -k 1 $patience"
typed '' "stty tostop; $limit $ringrun -n 1 sh -c 'stty -echo </dev/tty && echo was set'"
has "a rank may change the terminal" "$out" '^was set$'
typed '' "$limit $ringrun -n 1 sh -c 'read line </dev/tty; echo code \$?'"
has "reading it is an error" "$out" '^code [1-9]'
said='was stopped by' typed '\003' "$limit $ringrun -n 1 --kill-wait 1 bash --norc -ic :"
has "who is stopped all the same is named" "$out" 'rank 0 on host .* was stopped by SIGTTIN: '
typed '\003' "$ringrun -n 2 sh -c 'trap \"echo saved; exit 0\" INT; : >ready.\$RANK; while :; do sleep 0.05; done'"
equal "Ctrl-C" 130 "$code"
has "Ctrl-C reaches rank 0" "$out" '^(\^C)?saved$'
has "Ctrl-C reaches rank 1" "$out" '^\[1\] saved$'
# twice OPTION...: two Ctrl-C at a timeout(1), which passes on each, to ranks that go on after the first
printf 'trap "" INT; : >ready.$RANK; while :; do sleep 0.05; done' >stubborn
twice() {
    rm -f ready.? kept
    : >"$work/out"
    { for rank in 0 1; do becomes "rank $rank is ready" yes ready $rank; done
        printf '\003'
        appears 'second signal' "$work/out"
        sleep 1.3
        pgrep -f "^sh stubborn $tag" >/dev/null && : >kept
        printf '\003'
        sleep 0.3; } |
        script -qec "timeout $* -s KILL $patience $ringrun -n 2 --kill-wait 600 sh stubborn $tag" /dev/null >"$work/out" 2>&1
    equal "exit code after two Ctrl-C, timeout $*" 130 $?
    [ -e kept ] || wrong "one Ctrl-C killed the ranks, timeout $*"
}
twice --foreground
twice
finish
