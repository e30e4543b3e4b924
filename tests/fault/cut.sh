#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three ranks on three "hosts": network namespaces that a fourth one routes between. In the
# middle of a collective it forwards no more between ranks 1 and 2, while both still reach rank
# 0: every rank must end within a few seconds of RING_PEER_TIMEOUT, with an error that names
# one of the two. Usage: cut.sh BUILD
set -euo pipefail
bin=$1/bin
skip() { echo "SKIPPED: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip > /dev/null || skip "the command ip (iproute2) is not here"

id=$$
router=ring-r-$id
hosts=(ring-0-$id ring-1-$id ring-2-$id)
ip netns add "$router" 2> /dev/null || skip "this kernel or container allows no network namespaces"
work=$(mktemp -d)
cleanup() {
    local ns
    for ns in "${hosts[@]}" "$router"; do
        ip netns pids "$ns" 2> /dev/null | xargs -r kill -9 2> /dev/null || true
        ip netns del "$ns" 2> /dev/null || true
    done
    rm -rf "$work"
}
trap cleanup EXIT
why=$(ip netns exec "$router" true 2>&1) || skip "nothing can run in a namespace here: $why"
for i in 0 1 2; do
    ns=${hosts[i]}
    ip netns add "$ns"
    ip link add rh$i-$id type veth peer name rr$i-$id || skip "no veth in this kernel"
    ip link set rh$i-$id netns "$ns"
    ip link set rr$i-$id netns "$router"
    ip -n "$ns" addr add 10.78.$i.2/24 dev rh$i-$id
    ip -n "$router" addr add 10.78.$i.1/24 dev rr$i-$id
    ip -n "$ns" link set lo up
    ip -n "$ns" link set rh$i-$id up
    ip -n "$router" link set rr$i-$id up
    ip -n "$ns" route add default via 10.78.$i.1
done
ip netns exec "$router" sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward' ||
    skip "a namespace cannot forward here"

head -c 32 /dev/urandom > "$work/secret"
chmod 600 "$work/secret"
export RING_PEER_TIMEOUT=2 RING_SECRET_FILE="$work/secret" MASTER_ADDR=10.78.0.2 MASTER_PORT=29612
pids=()
for rank in 2 1 0; do
    ip netns exec "${hosts[rank]}" env RANK=$rank WORLD_SIZE=3 LOCAL_RANK=0 "$bin/ringperf" \
        all_reduce -b 1M -e 1M -n 1000000 -c 0 \
        > "$work/out.$rank" 2> "$work/err.$rank" &
    pids+=($!)
done
# They work once each has sent far more than a start needs.
for i in 0 1 2; do
    for _ in $(seq 600); do
        sent=$(ip netns exec "${hosts[i]}" cat /sys/class/net/rh$i-$id/statistics/tx_bytes)
        [ "$sent" -lt 50000000 ] || break
        sleep 0.1
    done
done
for pid in "${pids[@]}"; do
    kill -0 "$pid" 2> /dev/null || { cat "$work"/err.*; echo "FAILED: not running"; exit 1; }
done
drop() { ip -n "$router" rule add from 10.78.$1.0/24 to 10.78.$2.0/24 blackhole; }
drop 1 2 && drop 2 1 || skip "no policy routing in this kernel"
cut=$(date +%s%N)
( sleep 60; kill "${pids[@]}" ) > /dev/null 2>&1 &
guard=$!
for pid in "${pids[@]}"; do wait "$pid" && { echo "FAILED: a rank succeeded"; exit 1; }; done
took=$((($(date +%s%N) - cut) / 1000000))
kill $guard 2> /dev/null || true
grep -H . "$work"/err.* | sed "s|$work/||" || true
echo "all ranks ended $took ms after the cut"
for rank in 0 1 2; do
    grep -qE 'rank [12] \(.*was lost.*acknowledged nothing' "$work/err.$rank" ||
        { echo "FAILED: rank $rank does not name the lost one"; exit 1; }
done
[ $took -lt 25000 ] || { echo "FAILED: too late"; exit 1; }
echo ok
