# SPDX-License-Identifier: Apache-2.0
# The ranks' output, as users see it.
. "$(dirname "$0")/lib.sh"

run "$ringrun" -n 3 sh -c 'if [ $RANK != 0 ]; then printf "par"; sleep 0.2; printf "tial $RANK\n"; fi
    printf "last $RANK"; echo "e $RANK" >&2'
equal "exit code" 0 "$code"
for rank in 1 2; do
    has "line written in parts" "$out" "^\\[$rank\\] partial $rank\$"
    has "missing end of line" "$out" "^\\[$rank\\] last $rank\$"
    has "standard error" "$err" "^\\[$rank\\] e $rank\$"
done
has "rank 0 passes as it is" "$out" '^last 0$'
has "rank 0's standard error too" "$err" '^e 0$'

"$ringrun" -n 1 sh -c 'printf "a\0b\r\nno end"' >"$work/raw"
printf 'a\0b\r\nno end' | cmp - "$work/raw" || wrong "rank 0's bytes were changed"
head -c 3000000 /dev/urandom >"$work/random"
"$ringrun" -n 1 cat "$work/random" | cmp - "$work/random" || wrong "3 MB of noise were changed"

# A prompt is seen at once; the rest of a stdio block is waited for.
"$ringrun" -n 2 sh -c 'if [ $RANK = 0 ]; then printf "name? "; fi; sleep $0' "$tag" >prompt 2>/dev/null &
job=$!
appears '^name\? $' prompt
kill $job
wait $job
run "$ringrun" -n 2 sh -c 'if [ $RANK = 0 ]; then printf "%4096s" x; sleep 0.5; echo y; else sleep 0.2; echo between; fi'
equal "a line in two blocks is whole" 4097 "$(grep -v between "$work/out" | wc -L)"

run "$ringrun" -n 2 sh -c 'if [ $RANK = 1 ]; then head -c 100000 /dev/zero | tr "\0" x; echo; fi'
equal "a long line is whole" 100000 "$(tr -dc x <"$work/out" | wc -c)"
equal "a long line is prefixed once" 1 "$(grep -c '^\[1\]' "$work/out")"

run "$ringrun" -n 4 sh -c 'for i in $(seq 500); do echo "line $i of $RANK with some text to mix"; done'
equal "all lines" 2000 "$(wc -l <"$work/out")"
equal "no line is mixed" 2000 \
    "$(grep -Ec '^(\[[1-3]\] )?line [0-9]+ of [0-3] with some text to mix$' "$work/out")"

"$ringrun" -n 3 sh -c 'for i in $(seq 300); do echo "out of $RANK"; echo "err of $RANK" >&2; done' \
    >"$work/both" 2>&1
equal "both streams in one file" 1800 \
    "$(grep -Ec '^(\[[12]\] )?(out|err) of [0-2]$' "$work/both")"

run "$ringrun" -n 2 --tag-output echo hello
has "tagged rank 0" "$out" '^\[0\] hello$'

run "$ringrun" -n 2 --enable_each_rank_log "$work/logs" sh -c 'echo out $RANK; echo err $RANK >&2'
equal "log of rank 1" "err 1
out 1" "$(sort "$work/logs/rank_1.log")"
has "logged output is still shown" "$out" '^\[1\] out 1$'
equal "mode of the log folder" 700 "$(stat -c %a "$work/logs")"
equal "mode of a log" 600 "$(stat -c %a "$work/logs/rank_1.log")"
run "$ringrun" -n 1 --enable_each_rank_log "$work/logs" echo again
equal "log of a later run" again "$(cat "$work/logs/rank_0.log")"

# A link that somebody has put where a log goes is replaced, not followed.
echo untouched >"$work/other"
ln -sf ../other "$work/logs/rank_0.log"
run "$ringrun" -n 1 --enable_each_rank_log "$work/logs" echo logged
equal "target of a planted link" untouched "$(cat "$work/other")"
equal "log in the place of a link" "logged regular file" \
    "$(cat "$work/logs/rank_0.log") $(stat -c %F "$work/logs/rank_0.log")"
equal "files of the log folder" 2 "$(ls -A "$work/logs" | wc -l)"

# A folder that nobody can write to: one line, and nothing is left.
rm -rf "$work/logs/rank_0.log" && mkdir "$work/logs/rank_0.log"
run "$ringrun" -n 1 --enable_each_rank_log "$work/logs" true
equal "log that cannot be" 2 "$code"
equal "log that cannot be" "ringrun: cannot create the log file $work/logs/rank_0.log: Is a directory" "$err"
equal "files of the log folder" 2 "$(ls -A "$work/logs" | wc -l)"
run "$ringrun" -n 1 --enable_each_rank_log /proc/nowhere true
equal "log folder that cannot be" 2 "$code"
has "log folder that cannot be" "$err" '/proc/nowhere'

# A full disk does not end the job, and is told.
for lines in 1 100000; do
    "$ringrun" -n 2 seq $lines >/dev/full 2>"$work/err"
    equal "exit code without space for $lines lines" 3 $?
    has "message without space" "$(cat "$work/err")" '^ringrun: standard output: No space left on device'
    equal "one message without space" 1 "$(grep -c . "$work/err")"
done

"$ringrun" -n 2 sh -c 'while echo y; do :; done' "$tag" 2>"$work/err" | head -n 3 >"$work/out"
equal "a reader that leaves" 3 "$(wc -l <"$work/out")"
gone "writers without a reader"

# A slow reader holds up output, not the end of a failing job.
start=$(date +%s%N)
{ "$ringrun" -n 2 sh -c 'if [ $RANK = 1 ]; then sleep 0.3; exit 5; fi; while :; do echo yyyyyyyy; done' 2>/dev/null
    echo "code $?" >"$work/code"; } | { sleep 2.5; cat >/dev/null; }
equal "exit code with a slow reader" "code 5" "$(cat "$work/code")"
finish
