#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two hosts, one rank in each: ucx between them when it is asked for, by its tcp; never where what
# leaves a host has to be encrypted, which UCX does not do.
# Usage: sealed.sh BUILD
. "$(dirname "$0")/lib.sh"
export UCX_TLS=tcp
"$bin/ringinfo" | grep -q 'ucx  *works' || skip "ucx does not work here; ringinfo tells why"

# run VARIABLE=VALUE...: both ranks' output in $work; 0 if both have ended well.
run() {
    local rank wrong=0 pids=()
    for rank in 1 0; do
        local ns=$a
        [ "$rank" = 1 ] && ns=$b
        ip netns exec "$ns" env "$@" RANK=$rank WORLD_SIZE=2 LOCAL_RANK=0 RING_DEBUG=info \
            MASTER_ADDR=10.77.0.1 MASTER_PORT=29613 RING_SECRET_FILE="$work/secret" \
            "$bin/ringperf" all_reduce -b 8 -e 1M -f 8 -n 2 -w 1 -c 1 \
            > "$work/out.$rank" 2> "$work/err.$rank" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || wrong=1; done
    return $wrong
}

# expect WORD: what joins the ranks; and the values are right.
expect() {
    grep -q "device  0 \[$1\]" "$work/out.0" || { cat "$work"/out.0 "$work"/err.*; failed "not over $1"; }
    grep -q 'Out of bounds values : 0 OK' "$work/out.0" || failed "wrong values over $1"
}

run RING_TRANSPORT= || failed "the default"
expect tcp
for sockaddr in 1 0; do
    run RING_TRANSPORT=ucx RING_UCX_SOCKADDR=$sockaddr || { cat "$work"/err.*; failed "over ucx ($sockaddr)"; }
    expect ucx
done
run RING_TRANSPORT=ucx,tcp RING_ENCRYPT=1 || { cat "$work"/err.*; failed "encrypted"; }
expect tcp
grep -q 'ucx is not used between hosts: RING_ENCRYPT requires encryption' "$work/err.0" || failed "it does not say why"
if run RING_TRANSPORT=ucx RING_ENCRYPT=1; then failed "ucx joined hosts that encrypt"; fi
grep -q 'no transport can join rank . (.*) and rank . (.*) with encryption' "$work/err.0" ||
    { cat "$work"/err.*; failed "it does not say why"; }
echo ok
