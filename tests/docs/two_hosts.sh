#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command on node1, one of two hosts that share the files of this machine: network namespaces with host
# names of their own, joined by a veth pair. From node1 an ssh without a password reaches node2, where the
# environment is that of a new session and libring is installed as it is here. Nothing is left when the command
# has ended, since the namespaces have no names and end with their last process.
# Usage: two_hosts.sh COMMAND [ARGUMENT...]
# Exit status: that of the command; 77, with a reason, where no two hosts can be made.
set -euo pipefail
skip() { echo "two hosts: $*"; exit 77; }

if [ "${RING_DOCS_NODE-}" != node1 ]; then
    [ "$(id -u)" = 0 ] || skip "network namespaces need root"
    for program in ip unshare nsenter mount hostname ssh; do
        command -v "$program" > /dev/null || skip "the command $program is not here"
    done
    why=$(unshare --net --mount --uts true 2>&1) || skip "no namespaces can be made here: $why"
    RING_DOCS_NODE=node1 exec unshare --net --mount --uts bash "$0" "$@"
fi
unset RING_DOCS_NODE

work=$(mktemp -d)
unshare --net --uts sleep infinity > /dev/null 2>&1 &
node2=$!
trap 'kill $node2; rm -rf "$work"' EXIT
until [ "$(readlink /proc/$node2/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do
    kill -0 $node2 2> /dev/null || skip "the second namespace cannot be made here"
    sleep 0.01
done
there() { nsenter --target $node2 --net --uts "$@"; }

why=$(ip link add veth1 type veth peer name veth2 netns $node2 2>&1) || skip "no veth pair can be made here: $why"
hostname node1
ip addr add 10.77.1.1/24 dev veth1
there hostname node2
there ip addr add 10.77.1.2/24 dev veth2
for link in lo veth1; do ip link set $link up; done
for link in lo veth2; do there ip link set $link up; done
for tries in {1..300}; do # the kernel finds out a little later that the pair is up
    ip link show veth1 | grep -q 'state UP' && there ip link show veth2 | grep -q 'state UP' && break
    sleep 0.01
done

printf '127.0.0.1 localhost\n10.77.1.1 node1\n10.77.1.2 node2\n' > "$work/hosts"
why=$(mount --bind "$work/hosts" /etc/hosts 2>&1) || skip "no names can be given to hosts here: $why"
cat > "$work/ssh" << END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
[ "\$1" = node2 ] || { echo "ssh: Could not resolve hostname \$1: Name or service not known" >&2; exit 255; }
shift
cd / && exec nsenter --target $node2 --net --uts env -i PATH=/usr/bin:/bin \\
    LD_LIBRARY_PATH='${LD_LIBRARY_PATH-}' sh -c "\$*"
END
chmod +x "$work/ssh"
mount --bind "$work/ssh" "$(command -v ssh)" # for this namespace alone, whatever PATH the command has
"$@"
