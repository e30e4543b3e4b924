# SPDX-License-Identifier: Apache-2.0
# The secret: the same for all ranks, new each time, and nowhere to be read by chance.
. "$(dirname "$0")/lib.sh"

show='od -An -v -tx1 /proc/self/fd/$RING_SECRET_FD | tr -d " \n"; echo'
run "$ringrun" -n 3 sh -c "$show"
equal "one secret for all ranks" 1 "$(sed 's/^\[[0-9]\] //' "$work/out" | sort -u | wc -l)"
has "32 bytes" "$out" '^[0-9a-f]{64}$'
has_not "not nothing" "$out" '^0*$'
first=$(head -n 1 "$work/out")
run "$ringrun" -n 1 sh -c "$show"
[ "$out" != "$first" ] || wrong "two jobs had the same secret"

run "$ringrun" -n 2 sh -c 'dd bs=1 count=4 <&$RING_SECRET_FD 2>/dev/null | od -An -tx1; '"$show"
equal "reading does not move it for others" 64 "$(grep -Eo '[0-9a-f]{64}' <<<"$out" | head -n 1 | tr -d '\n' | wc -c)"
run "$ringrun" -n 1 sh -c 'echo x >/proc/self/fd/$RING_SECRET_FD'
[ "$code" -ne 0 ] || wrong "a rank could write to the secret"

# Nowhere in /proc: command lines and environments of everything that the job consists of.
# An ssh that runs the far side here, with nothing of our environment.
mkdir fake && cat >fake/ssh <<'END'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
shift
exec env -i PATH="$PATH" HOME=/ sh -c "$*"
END
chmod +x fake/ssh
mkfifo go
PATH=$work/fake:$PATH "$ringrun" -H a,localhost -n 4 --master-addr 127.0.0.1 \
    sh -c "$show; while [ ! -e $work/looked ]; do sleep 0.05; done" \
    >"$work/out" 2>"$work/err" </dev/null &
job=$!
appears '^\[3\]' "$work/out"
appears '^\[1\]' "$work/out"
hex=$(sed 's/^\[[0-9]\] //' "$work/out" | sort -u)
equal "the same secret on another host" 1 "$(wc -l <<<"$hex")"
found=0
for process in $(pgrep -g 0 . ; pgrep -f "$ringrun" ; pgrep -f "$work/looked"); do
    for file in cmdline environ; do
        [ -r "/proc/$process/$file" ] || continue
        found=$((found + 1))
        bytes=$(od -An -v -tx1 "/proc/$process/$file" | tr -d ' \n')
        has_not "secret as bytes in /proc/$process/$file" "$bytes" "$hex"
        has_not "secret as hex in /proc/$process/$file" "$(tr '\0' ' ' <"/proc/$process/$file")" "$hex"
    done
done
: >looked
[ "$found" -gt 8 ] || wrong "only $found files of /proc were looked at"
wait $job
equal "exit code" 0 $?
finish
