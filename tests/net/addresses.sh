#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How ranks of two hosts find each other: ids, names that mean several addresses or only the
# loopback, interfaces that lead nowhere, name servers that are silent.
# Usage: addresses.sh BUILD
. "$(dirname "$0")/lib.sh"
by_id=$1/tests/test_net_by_id
export RING_INIT_TIMEOUT=10 RING_SECRET_FILE=$work/secret

# Here something that only containers reach comes before the interface to the other host.
ip -n "$a" link add docker0 type veth peer name veth0
for end in docker0 veth0; do ip -n "$a" link set $end up; done
ip -n "$a" addr add 172.17.0.1/16 dev docker0
ip -n "$a" -o -4 addr show scope global | head -n 1 | grep -q docker0 ||
    echo "docker0 is not the first interface here: its name is not put to the test"

# in_a COMMAND..., in_b: on that host, with its own /etc/hosts and /etc/resolv.conf
: > "$work/hosts.a" > "$work/hosts.b"
printf 'nameserver 10.77.0.9\noptions timeout:30 attempts:1\n' > "$work/resolv"
in_ns() {
    local ns=$1 hosts=$2
    shift 2
    ip netns exec "$ns" sh -c 'mount --bind "$0" /etc/hosts && mount --bind "$1" /etc/resolv.conf &&
        shift && exec "$@"' "$hosts" "$work/resolv" "$@"
}
in_a() { in_ns "$a" "$work/hosts.a" "$@"; }
in_b() { in_ns "$b" "$work/hosts.b" "$@"; }

# joins WHAT VARIABLE=VALUE...: ranks 0 and 1 in a, 2 and 3 in b; the variables hold in a
joins() {
    local what=$1 rank wrong=0 pids=()
    shift
    for rank in 3 2 1 0; do
        local host=in_a own=("$@")
        [ "$rank" -lt 2 ] || { host=in_b; own=(); }
        $host env MASTER_ADDR=node0 MASTER_PORT=29612 RANK=$rank WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 \
            "${own[@]}" "$bin/ringperf" all_reduce -b 1K -e 1K -n 1 -c 1 > "$work/out.$rank" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || wrong=1; done
    [ $wrong = 0 ] || { cat "$work"/out.*; failed "$what"; }
    echo "joined: $what"
}

for maker in 0 1 2; do # ranks 0 and 2 are here
    rm -f "$work/id"
    in_a "$by_id" 0 3 "$work/id" $maker > "$work/out.0" 2>&1 &
    first=$!
    in_a "$by_id" 2 3 "$work/id" $maker > "$work/out.2" 2>&1 &
    in_b "$by_id" 1 3 "$work/id" $maker > "$work/out.1" 2>&1 ||
        { cat "$work"/out.*; failed "an id of rank $maker"; }
    wait $first || { cat "$work/out.0"; failed "an id of rank $maker, rank 0"; }
    wait $! || { cat "$work/out.2"; failed "an id of rank $maker, rank 2"; }
    grep -qx 'rank 1 of 3: 6' "$work/out.1" || failed "the sum of two hosts: $(cat "$work/out.1")"
    echo "joined: an id of rank $maker"
done

in_a "$bin/ringinfo" | grep -E 'for_other_hosts +10\.77\.0\.1$' ||
    failed "ringinfo: $(in_a "$bin/ringinfo" | grep for_other_hosts)"

echo '10.77.0.1 node0' > "$work/hosts.b"
printf '127.0.1.1 node0\n10.77.0.1 node0\n' > "$work/hosts.a"
joins "a name that means the loopback, too"

echo '127.0.1.1 node0' > "$work/hosts.a"
in_a env MASTER_ADDR=node0 MASTER_PORT=29612 RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 \
    "$bin/ringperf" all_reduce > "$work/out" 2>&1 && failed "only the loopback was listened on"
grep -q 'MASTER_ADDR=node0 .* set RING_ADDR' "$work/out" || failed "no advice: $(cat "$work/out")"
joins "a name that means only the loopback, with RING_ADDR" RING_ADDR=10.77.0.1

# Whatever is sent there vanishes. The resolver alone would wait for 30 s.
ip -n "$a" neigh add 10.77.0.9 lladdr 02:00:00:00:00:09 dev ra-$id nud permanent
start=$(date +%s%N)
in_a env RING_INIT_TIMEOUT=1 MASTER_ADDR=somewhere.example MASTER_PORT=29612 RANK=1 WORLD_SIZE=2 \
    "$bin/ringperf" all_reduce > "$work/out" 2>&1 && failed "a name was made up"
took=$((($(date +%s%N) - start) / 1000000))
grep -q 'MASTER_ADDR=somewhere.example: no name server answered' "$work/out" ||
    failed "a silent name server: $(cat "$work/out")"
[ $took -lt 20000 ] || failed "a silent name server held it for $took ms"
echo "silent name server: told after $took ms"

# A ringrun that cannot learn the first host's address asks that host itself. Its ssh is played here.
printf '#!/bin/sh\nshift $(($# - 1))\nexec sh -c "$1"\n' > "$work/ssh"
chmod +x "$work/ssh"
start=$(date +%s%N)
in_a env PATH="$work:$PATH" "$bin/ringrun" -H somewhere.example --remote-ringrun="$bin/ringrun" \
    sh -c 'echo "rank $RANK meets at $MASTER_ADDR"' > "$work/out" 2>&1 ||
    failed "ringrun with a silent name server: $(cat "$work/out")"
took=$((($(date +%s%N) - start) / 1000000))
grep -q '^rank 0 meets at 1[0-9.]*$' "$work/out" || failed "no address: $(cat "$work/out")"
[ $took -lt 20000 ] || failed "a silent name server held ringrun for $took ms"
echo "silent name server: ringrun began after $took ms"
