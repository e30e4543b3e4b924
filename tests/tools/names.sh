# SPDX-License-Identifier: Apache-2.0
# The names that a host has. They are looked up in a hosts file of the test's own, on a host with a
# name and addresses of its own: namespaces, which not every machine allows.
if [ -z "${own_host-}" ]; then
    for flags in -umn -rumn; do
        unshare $flags true 2>/dev/null && own_host=1 exec unshare $flags bash "$0" "$@"
    done
    echo "SKIPPED: this kernel, container or user allows no namespaces"
    exit 77
fi
export own_host
. "$(dirname "$0")/lib.sh"
command -v ip >/dev/null || { echo "SKIPPED: the command ip (iproute2) is not here"; exit 77; }

ip link set lo up
ip addr add 10.9.9.9/24 dev lo
ip -6 addr add fd00:9::9/64 dev lo nodad
hostname node7
knows() { # LINE...: the hosts file, beside localhost
    printf '%s\n' '127.0.0.1 localhost' "$@" >names
    mountpoint -q /etc/hosts && umount /etc/hosts
    mount --bind names /etc/hosts
}
mkdir fake
printf '#!/bin/sh\necho "ssh was called: $*" >&2\nexit 255\n' >fake/ssh
chmod +x fake/ssh
PATH=$work/fake:$PATH

# here OPTION...: these hosts are this one, with two slots
here() {
    run "$ringrun" "$@" sh -c 'echo $RANK of $WORLD_SIZE at $MASTER_ADDR'
    equal "this host: $*" "0 of 2 at 127.0.0.1
[1] 1 of 2 at 127.0.0.1" "$(sort "$work/out")$err"
}
# placed HOSTS OPTION...: "rank@host …" of a dry run
placed() {
    local expected=$1
    shift
    equal "places: $*" "$expected" "$("$ringrun" "$@" --dry-run true 2>&1 |
        sed -n 's/^# rank \([0-9]*\) of [0-9]* on \([^, ]*\).*/\1@\2/p; /^ringrun/p' | xargs)"
}
# refuse PATTERN OPTION...
refuse() {
    local pattern=$1
    shift
    run "$ringrun" "$@" true
    equal "exit code of: $*" 2 "$code"
    has "message of: $*" "$err" "$pattern"
}

knows '10.9.9.9 node7.cluster.example node7' '10.9.9.20 node8.cluster.example node8' \
    '10.9.9.21 node9' '10.9.9.20 alias8'
for name in node7 NODE7 node7.cluster.example node7.cluster.example. Node7.Cluster.Example 10.9.9.9 \
    '[fd00:9::9]' '[FD00:9:0:0::0009]' '[::ffff:10.9.9.9]' 127.0.0.1 127.0.1.1 127.1 '[::1]' 0.0.0.0 \
    localhost LOCALHOST localhost.localdomain ip6-localhost "$(id -un)@node7"; do
    here -H "$name:2"
done
here -H node7,node7.cluster.example
here -H localhost,10.9.9.9
here -H "[fd00:9::9],127.0.1.1"
printf 'node7.cluster.example\nnode7\n' >nodes
PBS_NODEFILE=$work/nodes here
LSB_HOSTS='node7 node7.cluster.example' here
SLURM_JOB_NODELIST=node7.cluster.example SLURM_TASKS_PER_NODE=2 here
SOME_HOSTS="'NODE7', 'node7.cluster.example'" here --hostfile env:SOME_HOSTS
printf 'node7.cluster.example slots=2\n' >hosts
here --hostfile hosts
here -H node7.cluster.example:4 --include node7:0,3
here --include node7.cluster.example:0,3
refuse "host 'nobody@node7' is this host, where ranks run as user $(id -un)" -H nobody@node7

placed "0@node8 1@node8" -H node8,node8.cluster.example
placed "0@node9 1@NODE8 2@NODE8 3@NODE8" -H node9,NODE8,alias8,10.9.9.20
placed "0@node8 1@node8 2@node9" -H node8:2,node9 --include alias8@node9
placed "0@node9" -H node8:2,node9 --exclude 10.9.9.20
placed "0@node7 1@node8" -H node7,node8
placed "0@unknown8 1@unknown8.cluster.example" -H unknown8,unknown8.cluster.example
printf 'node8 slots=2\nalias8 slots=2\n' >hosts
refuse "'node8' and 'alias8' are the same host; name it once, with all its slots" --hostfile hosts
SLURM_JOB_NODELIST='node8,alias8' refuse "'node8' and 'alias8' are the same host"
refuse "'node8' is named twice" -H node8,node9 --include node8@alias8
has "the address of the first host" "$("$ringrun" -H node8,node7 --dry-run true)" 'MASTER_ADDR=10.9.9.20'
has "our address for others" "$("$ringrun" -H node7,node8 --dry-run true)" 'MASTER_ADDR=10.9.9.9'

# As Debian writes it.
knows '127.0.1.1 node7.cluster.example node7'
here -H node7:2
here -H node7.cluster.example:2
here -H node7,node7.cluster.example
PBS_NODEFILE=$work/nodes here
finish
