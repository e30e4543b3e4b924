#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Four ranks on two "hosts": two network namespaces joined by a veth pair, two ranks in each.
# Collectives must be right, and the bytes that the veth saw must be those of the ring: each
# direction carries 2(n-1)/n * S an all_reduce.
# Usage: namespaces.sh BUILD [more ringperf sizes]     e.g. namespaces.sh build -b 8 -e 64M -f 2
set -euo pipefail
bin=$1/bin
shift
sizes=("$@")
[ ${#sizes[@]} -gt 0 ] || sizes=(-b 8 -e 4M -f 8)
skip() { echo "SKIPPED: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip > /dev/null || skip "the command ip (iproute2) is not here"

id=$$
a=ring-a-$id b=ring-b-$id
ip netns add "$a" 2> /dev/null || skip "this kernel or container allows no network namespaces"
work=$(mktemp -d)
cleanup() {
    ip netns pids "$a" 2> /dev/null | xargs -r kill 2> /dev/null || true
    ip netns pids "$b" 2> /dev/null | xargs -r kill 2> /dev/null || true
    ip netns del "$a" 2> /dev/null || true
    ip netns del "$b" 2> /dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
why=$(ip netns exec "$a" true 2>&1) || skip "nothing can run in a namespace here: $why"
ip netns add "$b"
ip link add ra-$id type veth peer name rb-$id || skip "no veth in this kernel"
ip link set ra-$id netns "$a"
ip link set rb-$id netns "$b"
ip -n "$a" addr add 10.77.0.1/24 dev ra-$id
ip -n "$b" addr add 10.77.0.2/24 dev rb-$id
for ns in "$a" "$b"; do ip -n "$ns" link set lo up; done
ip -n "$a" link set ra-$id up
ip -n "$b" link set rb-$id up

head -c 32 /dev/urandom > "$work/secret"
chmod 600 "$work/secret"
sent() { ip netns exec "$a" cat /sys/class/net/ra-$id/statistics/tx_bytes; }

# run COLLECTIVE OPTION...: ranks 0 and 1 here, 2 and 3 there; rank 0's table on stdout.
run() {
    local rank pids=() failed=0
    for rank in 3 2 1 0; do
        local ns=$a
        [ "$rank" -ge 2 ] && ns=$b
        ip netns exec "$ns" env RANK=$rank WORLD_SIZE=4 LOCAL_RANK=$((rank % 2)) \
            MASTER_ADDR=10.77.0.1 MASTER_PORT=29611 RING_SECRET_FILE="$work/secret" \
            "$bin/ringperf" "$@" > "$work/out.$rank" 2> "$work/err.$rank" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    cat "$work/out.0"
    [ $failed = 0 ] || { cat "$work"/err.*; echo "FAILED: ringperf $*"; exit 1; }
}

for collective in all_reduce reduce_scatter all_gather broadcast; do
    run "$collective" "${sizes[@]}" -c 1 -n 3 -w 1 --json "$work/$collective.json"
    grep -q '"wrong": *0[,}]' "$work/$collective.json" || { echo "FAILED: no checked line"; exit 1; }
    if grep -E '"wrong": *[1-9]' "$work/$collective.json"; then echo "FAILED: wrong values"; exit 1; fi
done
grep -q 'tcp' "$work/all_reduce.json" || { echo "FAILED: not over tcp"; exit 1; }

# Bytes on the wire: calls of 8 MiB by the ring.
export RING_ALGO=ring
before=$(sent)
run all_reduce -b 8M -e 8M -n 10 -w 1 -c 0 > /dev/null
after=$(sent)
calls=22 # out of place and in place: 1 warm-up and 10 timed each
want=$((calls * 8388608 * 2 * 3 / 4))
got=$((after - before))
echo "veth: $got bytes one way, the ring's payload is $want"
[ $got -ge $want ] || { echo "FAILED: fewer bytes than the payload"; exit 1; }
[ $got -le $((want + want / 8)) ] || { echo "FAILED: more than headers explain"; exit 1; }
echo ok
