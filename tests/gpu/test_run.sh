#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/run over programs that hang, fail or end well: each is a result, and no process is left.
# Finds the driver's double by LD_LIBRARY_PATH.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
run=$here/run
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; cat "$work/said" >&2; exit 1; }

FAKE_CUDA=no_device python3 "$run" A > "$work/said" 2>&1
[ $? = 77 ] || fail "the exit status without a GPU"
grep -qx 'SKIPPED: there is no GPU here.*' "$work/said" && [ "$(wc -l < "$work/said")" = 1 ] ||
    fail "the output without a GPU"

mkdir "$work/programs"
cat > "$work/programs/program" <<'END_OF_PROGRAM'
#!/bin/bash
case $0 in
*gpu_sizes)
    setsid sleep 1000 &
    echo $! $$ > "$(dirname "$0")/pids"
    trap 'echo rank 7 is at its place' USR1
    echo hangs
    while :; do wait; done ;;
*gpu_pack) echo this is why; exit 3 ;;
*gpu_device) exit 77 ;;
*ringtrain_doubled) echo "ringtrain: cuBLASLt was not found"; exit 1 ;;
*gpu_speed)
    printf 'ROW\tdevice copy, bytes moved\t3000.25\tGB/s\n'
    printf 'ROW\tfold of 2, share of the device copy\t0.8\t\n' ;;
esac
END_OF_PROGRAM
chmod +x "$work/programs/program"
for name in gpu_{calls,cast,device,fold,nccl,norm,optimizer,pack,sizes,speed} \
    {sweep,ringperf,ringtrain}_doubled ring{digits,run}; do
    ln -s program "$work/programs/$name"
done
rehearse=(--rehearse "$work/programs" --launcher "$work/programs/ringrun")
row() { grep -q "$1" "$work/out/results.jsonl" || fail "no result with $1"; }

python3 "$run" A "${rehearse[@]}" --limit 3 --out "$work/out" > "$work/said" 2>&1
[ $? = 1 ] || fail "the exit status with failures"
folds='"folds of all sizes, part 1 of 1"'
row "$folds"', "value": "FAILED: killed after 3 s".*"good": false.*"note": "hangs'
row "$folds"'.*rank 7 is at its place.*waits in'
row '"kernels: pack, seed 1", "value": "FAILED (3)".*"note": "this is why"'
row '"accelerator: it knows its memory", "value": "skipped".*"good": true'
for pid in $(cat "$work/programs/pids"); do
    grep -q '^State:.[^Z]' "/proc/$pid/status" 2> /dev/null && fail "process $pid is still there"
done
# Failures come first, in the table and in the summary.
sed -n '3p' "$work/out/results.md" | grep -qx '## Failures' || fail "the table's first title"
sed -n '/^SUMMARY$/,$p' "$work/said" | sed -n 2p | grep -q '^FAILED' ||
    fail "the summary's first line"

# Another stage's results join those of the first.
python3 "$run" B "${rehearse[@]}" --limit 3 --out "$work/out" > "$work/said" 2>&1
row '"device copy, bytes moved", "value": 3000.25, "unit": "GB/s"'
row '"fold of 2, share of the device copy".*"bar": ">= 1.0", "met": "not judged"'
row '"kernels: pack, seed 1"'
grep -q '| B | device copy, bytes moved | 3000 GB/s |' "$work/out/results.md" || fail "the table"

# Without cuBLASLt, the trainer's stage says so and is good.
python3 "$run" T "${rehearse[@]}" --out "$work/out" > "$work/said" 2>&1 || fail "the exit status of T"
row '"the trainer on a GPU", "value": "skipped: ringtrain: cuBLASLt was not found".*"good": true'

# The time of a stage: the rest of its programs do not run.
sed "s/^STAGE_SECONDS = .*/STAGE_SECONDS = 2.1/" "$run" > "$work/run"
PYTHONPATH=$here python3 "$work/run" A "${rehearse[@]}" --out "$work/out" > "$work/said" 2>&1
row '"value": "not run: the time of the stage is over".*"good": false'

# The MPS daemon is ended after failures, too, and one that does not start is a failure.
export FAKE_MPS_ENDED=$work/ended
rehearse+=(--limit 3 --out "$work/out")
python3 "$run" M "${rehearse[@]}" --mps "$here/fake_mps.sh" > "$work/said" 2>&1
grep -qx quit "$work/ended" || fail "the MPS daemon was not ended"
row '"the MPS daemon", "value": "ended".*"good": true'
python3 "$run" M "${rehearse[@]}" --mps false > "$work/said" 2>&1
[ $? = 1 ] || fail "the exit status without an MPS daemon"
row '"the MPS daemon", "value": "FAILED: it did not start".*"good": false'
echo ok
