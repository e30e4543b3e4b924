# SPDX-License-Identifier: Apache-2.0
# One rank fails while links are opened: all ranks say why, not only what they saw of it.
# Usage: reason.sh BIN
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RANK WORLD_SIZE LOCAL_RANK RING_RANK RING_SIZE
failures=0

# ranks WHERE LIMIT SETTING: four of them; rank 2 has the setting, and may open LIMIT more files
ranks() {
    RING_TRANSPORT=$1 "$bin/ringrun" -n 4 bash -c '
        if [ "$RING_RANK" = 2 ]; then
            export "$3"
            open=(/proc/self/fd/*)
            ulimit -n $((${#open[@]} + $2))
        fi
        exec "$0" all_reduce -b 8 -e 8 -n 1 -w 1' "$bin/ringperf" "" "$2" "$3" >"$work/out" 2>&1
}

# expect WHAT PATTERN COUNT
expect() {
    local count
    count=$(grep -Ec -- "$2" "$work/out")
    [ "$count" = "$3" ] && return
    echo "FAILED: $1: $count lines match '$2', wanted $3:"
    cat "$work/out"
    failures=$((failures + 1))
}

for transport in shm tcp; do
    for try in 1 2 3; do
        ranks $transport 200 RING_FAULT=nonsense
        expect "a wrong setting, $transport" 'error: rank 2 \(.*nonsense' 4
    done
done

for transport in shm tcp; do
    told=0
    for limit in $(seq 5 20); do
        ranks $transport "$limit" RING_FAULT=
        expect "$limit descriptors, $transport" 'Broken pipe|Connection reset|closed' 0
        [ "$(grep -c 'rank 2 (.*ulimit -n' "$work/out")" -lt 3 ] || told=$((told + 1))
    done
    echo "$transport: $told lacks of descriptors were told to all"
    [ $told -ge 3 ] || { echo "FAILED: too few"; failures=$((failures + 1)); }
done
[ $failures = 0 ]
