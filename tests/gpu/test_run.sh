#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests/gpu/run over programs that hang, fail or end well. Each must be a row, none may be left
# running, and the summary must name failures first. Finds the driver's double by LD_LIBRARY_PATH.
set -uo pipefail
run=$(cd "$(dirname "$0")" && pwd)/run
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; cat "$work/said" >&2; exit 1; }

FAKE_CUDA=no_device python3 "$run" A > "$work/said" 2>&1
[ $? = 77 ] || fail "the exit status without a GPU"
grep -qx 'SKIPPED: there is no GPU here.*' "$work/said" && [ "$(wc -l < "$work/said")" = 1 ] ||
    fail "what is said without a GPU"

mkdir "$work/programs"
cat > "$work/programs/program" <<'END'
#!/bin/sh
case $0 in
*gpu_sizes) sleep 1000 & echo $! > "$(dirname "$0")/pid"; echo hangs; wait ;;
*gpu_pack) echo this is why; exit 3 ;;
*gpu_device) exit 77 ;;
*gpu_speed) printf 'ROW\tdevice copy, bytes moved\t3000.25\tGB/s\n' ;;
esac
END
chmod +x "$work/programs/program"
for name in gpu_{calls,cast,device,fold,norm,optimizer,pack,sizes,speed} sweep_doubled; do
    ln -s program "$work/programs/$name"
done
python3 "$run" A --rehearse "$work/programs" --limit 5 --out "$work/out" > "$work/said" 2>&1
[ $? = 1 ] || fail "the exit status with failures"
row() { grep -q "$1" "$work/out/results.jsonl" || fail "no row with $1"; }
row '"folds of all sizes", "value": "FAILED: killed after 5 s".*"good": false.*"note": "hangs'
row '"kernels: pack, seed 1", "value": "FAILED (3)".*"note": "this is why"'
row '"accelerator: it knows its memory", "value": "skipped".*"good": true'
sed -n '/^== /,$p' "$work/said" | sed -n 2p | grep -q '^A .*FAILED' || fail "the summary"
sed -n '$p' "$work/said" | grep -q 'rows are good$' || fail "the end of the summary"
python3 "$run" B --rehearse "$work/programs" --limit 5 --out "$work/out" > "$work/said" 2>&1
row '"device copy, bytes moved", "value": 3000.25, "unit": "GB/s"'
grep -q '| B | device copy, bytes moved | 3000 GB/s |' "$work/out/results.md" || fail "the table"
grep -q '^State:.[^Z]' "/proc/$(cat "$work/programs/pid")/status" 2> /dev/null &&
    fail "what hung is still there"
echo ok
