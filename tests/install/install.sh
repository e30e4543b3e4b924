#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs to a fresh prefix and uses it as strangers would: find_package, pkg-config, the header
# alone in C and C++; nothing but ring_* leaves the library.
# Usage: install.sh SOURCE BUILD; RING_TEST_LONG=1 also makes all manual pages of a parent project.
set -euo pipefail
unset CFLAGS # strangers have flags of their own
source_dir=$1 build_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

cmake --install "$build_dir" --prefix "$work/prefix" > "$work/install.log"
libdir=$(dirname "$(find "$work/prefix" -name 'libring.so' | head -n 1)")
[ -n "$libdir" ] || fail "no libring.so was installed"

echo "the programs, from where they lie and after a move:"
"$work/prefix/bin/ringperf" all_reduce -t 2 -b 8 -e 8 -n 1 > "$work/perf.log" ||
    { cat "$work/perf.log"; fail "the installed ringperf"; }
"$work/prefix/bin/ringperf" compare --contenders ring --sizes 8 --rounds 1 \
    --html "$work/compare.html" > "$work/compare.log" ||
    { cat "$work/compare.log"; fail "the installed ringperf compare"; }
grep -q '<path class="curve"' "$work/compare.html" || fail "the page of ringperf compare"
mv "$work/prefix" "$work/a moved prefix"
"$work/a moved prefix/bin/ringtrain" --help > /dev/null || fail "ringtrain after a move"
mv "$work/a moved prefix" "$work/prefix"

echo "find_package:"
cmake -G Ninja -S "$source_dir/docs/examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$work/prefix" \
    > "$work/examples.log" || { cat "$work/examples.log"; fail "cmake of the examples"; }
cmake --build "$work/examples" >> "$work/examples.log" || { cat "$work/examples.log"; fail "build"; }
run="$work/prefix/bin/ringrun -n 2"
[ "$($run "$work/examples/hello")" = "sum of 2 ranks: 1" ] || fail "hello by find_package"
[ "$($run "$work/examples/overlap" | head -n 1)" = "average gradient of 2 ranks: 1.5" ] || fail "overlap"
[ "$("$work/prefix/bin/ringrun" -n 4 "$work/examples/grid" 2)" = \
    "2 rows of 2; the ranks of row 0 add to 1, of column 0 to 2" ] || fail "grid"
[ "$($run "$work/examples/own_layer" | sed 's/loss.*, acc/acc/; s/,.*//')" = "accuracy 0.99" ] ||
    fail "own_layer by find_package"
port=$("$work/prefix/bin/ringrun" -n 1 sh -c 'echo $MASTER_PORT') # one that is free
for rank in 0 1 2; do
    RANK=$rank WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port RING_INSECURE=1 \
        "$work/examples/survive" > "$work/survive.$rank" &
done
wait
[ "$(cat "$work/survive.0")" = "6 rounds: begun by 3 ranks, ended by 2" ] || fail "survive"

echo "pkg-config:"
export PKG_CONFIG_PATH=$libdir/pkgconfig
# shellcheck disable=SC2046
cc -o "$work/hello" "$source_dir/docs/examples/2_hello.c" $(pkg-config --cflags --libs ring) \
    -Wl,-rpath,"$libdir"
[ "$($run "$work/hello")" = "sum of 2 ranks: 1" ] || fail "hello by pkg-config"

# shellcheck disable=SC2046
cc -o "$work/own_layer" "$source_dir/docs/examples/10_own_layer.c" \
    $(pkg-config --cflags --libs ringtrain) -lm -Wl,-rpath,"$libdir"
"$work/own_layer" > /dev/null || fail "own_layer by pkg-config"

echo "the headers alone:"
include=$work/prefix/include
program=$(dirname "$0")/header.c # valid as either language, in all standards
for standard in c89 gnu89 c99 c11 c17; do
    cc -x c -std=$standard -Wall -Wextra -pedantic -Werror -I"$include" -o "$work/header" \
        "$program" -L"$libdir" -lring -Wl,-rpath,"$libdir" || fail "header as $standard"
    "$work/header" || fail "a program in $standard"
done
for standard in c89 c11; do
    cc -x c -std=$standard -Wall -Wextra -pedantic -Werror -I"$include" -o "$work/header" \
        "$(dirname "$0")/train_header.c" -L"$libdir" -lringtrain -lring -Wl,-rpath,"$libdir" ||
        fail "train.h as $standard"
    "$work/header" || fail "a training program in $standard"
done
if command -v c++ > /dev/null; then
    for standard in c++98 c++11 c++14 c++17 c++20; do
        c++ -x c++ -std=$standard -Wall -Wextra -pedantic -Werror -I"$include" \
            -o "$work/header" "$program" -L"$libdir" -lring -Wl,-rpath,"$libdir" ||
            fail "header as $standard"
        "$work/header" || fail "a program in $standard"
    done
    c++ -x c++ -std=c++98 -Wall -Wextra -pedantic -Werror -I"$include" -o "$work/header" \
        "$(dirname "$0")/train_header.c" -L"$libdir" -lringtrain -lring -Wl,-rpath,"$libdir" ||
        fail "train.h as c++98"
    "$work/header" || fail "a training program in c++98"
else
    echo "  C++ skipped: no C++ compiler here"
fi

echo "hardened:"
dynamic=$(readelf -dW "$libdir/libring.so")
for flag in NODELETE BIND_NOW; do
    grep -q "$flag" <<< "$dynamic" || fail "libring.so is not linked with $flag"
done
readelf -lW "$libdir/libring.so" | grep -q GNU_RELRO || fail "libring.so without relro"
nm -D --undefined-only "$libdir/libring.so" > "$work/needed"
grep -q __stack_chk_fail "$work/needed" || fail "libring.so without the stack protector"
if grep -q '^CMAKE_BUILD_TYPE:.*=Release$' "$build_dir/CMakeCache.txt"; then
    grep -q __vsnprintf_chk "$work/needed" || fail "a release without _FORTIFY_SOURCE"
fi

echo "as a part of another project, which has its own targets, tests and build type:"
mkdir "$work/parent project"
cat > "$work/parent project/CMakeLists.txt" << END
cmake_minimum_required(VERSION 3.24)
project(parent LANGUAGES C)
add_custom_target(manual)
add_subdirectory("$source_dir" ring)
if(RING_BUILD_TESTS OR CMAKE_BUILD_TYPE)
    message(FATAL_ERROR "libring chose for its parent")
endif()
END
cmake -G Ninja -S "$work/parent project" -B "$work/parent project/build" > "$work/parent.log" 2>&1 ||
    { cat "$work/parent.log"; fail "add_subdirectory"; }
pages=ring_manual_ringdigits # of the smallest program; all of them are made alike
[ -z "${RING_TEST_LONG-}" ] || pages=ring_manual
cmake --build "$work/parent project/build" --target $pages >> "$work/parent.log" ||
    { tail -n 40 "$work/parent.log"; fail "a build folder with a space in its name"; }

echo "exported symbols:"
# check_exports LIBRARY HEADER PREFIX: nothing that the header does not declare, all that it does
check_exports() {
    nm -D --defined-only "$libdir/$1" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort > "$work/exported"
    if grep -v "^$3" "$work/exported"; then fail "$1 exports what has not its prefix"; fi
    grep -oE "\\b$3[a-z_]+\(" "$include/ring/$2" | tr -d '(' | sort -u > "$work/declared"
    comm -23 "$work/exported" "$work/declared" | sed "s/^/$1 exports, and $2 does not declare: /" > "$work/wrong"
    [ ! -s "$work/wrong" ] || { cat "$work/wrong"; fail "exported symbols"; }
    echo "$1: $(wc -l < "$work/exported") functions"
}
check_exports libring.so ring.h ring_
check_exports libringtrain.so train.h ring_train_
echo ok
