#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./demo and ./check in a folder of their own, with stand-ins for cmake, ninja and dpkg-query that note
# how they are called: what each script configures and builds, the progress that it shows, and the list
# of skipped tests, which comes from a real ctest.
# Usage: scripts.sh SOURCE
set -euo pipefail
source_dir=$1
unset RING_DATA RING_PYTHON
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; [ ! -f "$work/said" ] || cat "$work/said" >&2; exit 1; }

mkdir -p "$work/tree/.ci" "$work/tree/tests" "$work/tree/data" "$work/bin"
cp "$source_dir/demo" "$source_dir/check" "$work/tree"
cp "$source_dir/.ci/setup.sh" "$work/tree/.ci"
cp "$source_dir/tests/skipped.py" "$work/tree/tests"
cd "$work/tree"
sed -i 's/^progress_seconds=10/progress_seconds=1/' .ci/setup.sh

# stand_in NAME: a program of this name in PATH, from standard input.
stand_in() { { echo '#!/usr/bin/env bash'; cat; } > "$work/bin/$1"; chmod +x "$work/bin/$1"; }
stand_in dpkg-query <<< 'echo "install ok installed"'
stand_in cmake << 'END'
echo "cmake $*" >> "$NOTES"
mkdir -p build
touch build/CMakeCache.txt
END
# ninja makes the programs that it is asked for. Without a terminal it waits until its first line is shown.
stand_in ninja << 'END'
echo "ninja $*" >> "$NOTES"
shift 2 # -C DIR
mkdir -p build/bin
for target in "$@"; do
    printf '#!/bin/sh\necho "$(basename "$0") runs"\n[ "$1" != -n ] || { shift 2; exec "$@"; }\n' > "build/bin/$target"
    chmod +x "build/bin/$target"
done
[ -t 1 ] && { echo "a line that moves"; exit 0; }
echo "[1/2] Building one.c"
for i in $(seq 200); do ! grep -q "Building one.c" "$SAID" || break; sleep 0.1; done
[ ! -f fails ] || { echo "FAILED: two.o"; echo "two.c:1:1: error: it is wrong"; exit 1; }
END
export NOTES=$work/notes SAID=$work/said PATH="$work/bin:$PATH"
run() { : > "$NOTES"; timeout 60 "$@" > "$SAID" 2>&1; }
says() { grep -qE "$1" "$SAID" || fail "$2"; }

echo "./demo builds what it runs:"
run ./demo --data data || fail "./demo"
says 'takes about .* minute' "how long ./demo takes"
grep -q 'cmake.* -DRING_BUILD_TESTS=OFF -DRING_CUDA=OFF$' "$NOTES" || fail "what ./demo configures"
for program in ringrun ringperf ringtrain; do
    says "^$program runs" "./demo did not run $program"
done
says '^  \[1/2\] Building one.c' "no progress where there is no terminal"

echo "a folder that is configured stays as it is:"
run ./demo --data data || fail "./demo for the second time"
grep -q 'cmake.*-DRING' "$NOTES" && fail "./demo configured again what was configured"

echo "on a terminal ninja shows its own line:"
if command -v script > /dev/null; then
    run script -qec "./demo --data data" /dev/null || fail "./demo on a terminal"
    says '^a line that moves' "ninja had no terminal"
fi

echo "a build that fails:"
touch fails
if run ./demo --data data; then fail "a build that failed is a success"; fi
says 'two.c:1:1: error' "the error of the build"
says 'error: the build failed; see build.log' "that the build failed"
rm fails

echo "./check turns on what ./demo turned off, and gives the reason of each skip:"
cat > build/CTestTestfile.cmake << 'END'
add_test(runs true)
add_test(no_adapter sh -c "seq 5000; echo 'SKIPPED: no adapter here'; exit 77")
add_test(cases sh -c "echo 'SKIPPED: <one> & two'; echo '[  SKIPPED ] x'; echo 'SKIPPED: <one> & two'; echo 'SKIPPED: three'; exit 77")
add_test(silent sh -c "exit 77")
set_tests_properties(no_adapter cases silent PROPERTIES SKIP_RETURN_CODE 77)
END
mkdir -p build/cuda && touch build/cuda/complete # nvcc is there
run ./check || fail "./check with tests that pass and are skipped"
grep -q 'cmake.* -DRING_BUILD_TESTS=ON -DRING_CUDA=AUTO$' "$NOTES" || fail "what ./check configures"
says '^100% tests passed, 0 tests failed out of' "ctest's summary"
says '^Skipped here: 3 tests$' "the number of skipped tests"
says '^  no_adapter: no adapter here$' "the reason after long output"
says '^  cases: <one> & two; three$' "several reasons, each once"
says '^  silent: it printed no reason$' "a test without a reason"
run ./check -R runs || fail "./check with one test"
grep -q 'Skipped here' "$SAID" && fail "skips of an earlier run"
echo 'add_test(fails false)' >> build/CTestTestfile.cmake
if run ./check; then fail "./check succeeds with a test that fails"; fi
says '^  no_adapter: no adapter here$' "the reasons beside a failure"
echo ok
