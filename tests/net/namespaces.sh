#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Four ranks on two "hosts": two network namespaces joined by a veth pair, two ranks in each.
# Collectives must be right, and the bytes that the veth saw those of the algorithm: each direction
# carries 2(n-1)/n * S an all_reduce by the ring, 2(H-1)/H * S by hierarchical.
# Usage: namespaces.sh BUILD [more ringperf sizes]     e.g. namespaces.sh build -b 8 -e 64M -f 2
. "$(dirname "$0")/lib.sh"
shift
sizes=("$@")
[ ${#sizes[@]} -gt 0 ] || sizes=(-b 8 -e 4M -f 8)

sent() { ip netns exec "$a" cat /sys/class/net/ra-$id/statistics/tx_bytes; }

# run COLLECTIVE OPTION...: ranks 0 and 1 here, 2 and 3 there; rank 0's table on stdout.
run() {
    local rank wrong=0 pids=()
    for rank in 3 2 1 0; do
        local ns=$a
        [ "$rank" -ge 2 ] && ns=$b
        ip netns exec "$ns" env RANK=$rank WORLD_SIZE=4 LOCAL_RANK=$((rank % 2)) \
            MASTER_ADDR=10.77.0.1 MASTER_PORT=29611 RING_SECRET_FILE="$work/secret" \
            "$bin/ringperf" "$@" > "$work/out.$rank" 2> "$work/err.$rank" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || wrong=1; done
    cat "$work/out.0"
    [ $wrong = 0 ] || { cat "$work"/err.*; failed "ringperf $*"; }
}

for collective in all_reduce reduce_scatter all_gather broadcast; do
    run "$collective" "${sizes[@]}" -c 1 -n 3 -w 1 --json "$work/$collective.json"
    grep -q '"wrong": *0[,}]' "$work/$collective.json" || failed "no checked line"
    if grep -E '"wrong": *[1-9]' "$work/$collective.json"; then failed "wrong values"; fi
done
grep -q 'tcp' "$work/all_reduce.json" || failed "not over tcp"

# By the algorithm that is made for hosts.
export RING_ALGO=hierarchical
for collective in all_reduce reduce_scatter all_gather broadcast reduce; do
    run "$collective" "${sizes[@]}" -c 1 -n 3 -w 1 --json "$work/$collective.json"
    grep -q '"algorithm": "hierarchical"' "$work/$collective.json" || failed "another algorithm"
    grep -q '"wrong": *0[,}]' "$work/$collective.json" || failed "no checked line"
    if grep -E '"wrong": *[1-9]' "$work/$collective.json"; then failed "wrong values"; fi
done

# Bytes on the wire one way: 22 calls of 8 MiB; out of place and in place 1 warm-up and 10 timed
# each. carries ALGORITHM QUARTERS: so many quarters of the vector a call.
carries() {
    local before after got want=$((22 * 8388608 / 4 * $2))
    export RING_ALGO=$1
    before=$(sent)
    run all_reduce -b 8M -e 8M -n 10 -w 1 -c 0 > /dev/null
    after=$(sent)
    got=$((after - before))
    echo "veth: $got bytes one way, the payload of $1 is $want"
    [ $got -ge $want ] || failed "fewer bytes than the payload"
    [ $got -le $((want + want / 8)) ] || failed "more than headers explain"
}
carries ring 6         # 2 (n - 1) / n
carries hierarchical 4 # 2 (H - 1) / H, for two hosts
echo ok
