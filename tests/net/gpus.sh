#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two hosts with two GPUs each, over the double of NVIDIA's driver, started as a user would: the GPUs run calls
# themselves, also in graphs, and the results are right.
# Usage: gpus.sh BUILD
set -euo pipefail
build=$1
here=$(cd "$(dirname "$0")" && pwd)
failed() { echo "FAILED: $*"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$build/tests/fake-cuda FAKE_CUDA_DEVICES=2
export RING_DEBUG=info RING_SOCKET_IFNAME=veth # which is left out by default, as an interface of containers

# perf OPTION...: measures with 4 ranks, which check each value
perf() {
    local code=0
    bash "$here/../docs/two_hosts.sh" "$build/bin/ringrun" -H node1:2,node2:2 -x FAKE_CUDA_DEVICES \
        "$build/tests/ringperf_doubled" "$@" --device cuda --stream -n 3 -w 1 -c 1 --json "$work/rows.json" \
        > "$work/out" 2> "$work/log" || code=$?
    cat "$work/out"
    [ $code != 77 ] || exit 77
    [ $code = 0 ] || { cat "$work/log"; failed "$*"; }
    [ "$(grep -c 'runs calls itself' "$work/log")" -ge 4 ] || { cat "$work/log"; failed "GPUs run no calls: $*"; }
    grep -q '"wrong": *0[,}]' "$work/rows.json" || failed "no checked row: $*"
    if grep -E '"wrong": *[1-9]' "$work/rows.json"; then failed "wrong values: $*"; fi
}

for collective in all_reduce all_gather broadcast all_to_all; do
    perf $collective -b 8 -e 1M -f 32
done
perf all_reduce -b 64K -e 64K --graph 4
