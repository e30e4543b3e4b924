# SPDX-License-Identifier: Apache-2.0
# Two "hosts": network namespaces $a (10.77.0.1) and $b (10.77.0.2) joined by a veth pair, and a
# folder $work. Skips with the reason where there can be none. Source it with $1 = BUILD.
set -euo pipefail
bin=$1/bin
skip() { echo "SKIPPED: $*"; exit 77; }
failed() { echo "FAILED: $*"; exit 1; }
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
