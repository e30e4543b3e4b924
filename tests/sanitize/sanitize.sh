#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds with a sanitizer (a preset, outside of build/) and runs the unit, transport,
# collective and fuzz tests in it, the sweep as a sample. Any report fails a test: no suppressions.
# Usage: sanitize.sh SOURCE asan|tsan
set -euo pipefail
cd "$1"
preset=$2
log=build-$preset.log
cmake --preset "$preset" > "$log" 2>&1 || { tail -n 40 "$log"; exit 1; }
cmake --build --preset "$preset" > "$log" 2>&1 || { tail -n 40 "$log"; exit 1; }
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
without=()
[ "$preset" = tsan ] && without=(-E '^plan|^train.models$') # one thread: no races
ctest --preset "$preset" -j 2 -L 'unit|transport|coll|fuzz' "${without[@]}" --no-tests=error --quiet \
    --output-log "$log" || { grep -vE ' +Passed' "$log" | tail -n 200; exit 1; }
tail -n 15 "$log"
