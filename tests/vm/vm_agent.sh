#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs in a guest as its only service: sets up file systems, network and ssh, then runs the commands
# that come over the second serial port. A line "ID SECONDS" there asks for $VM_WORK/NAME.ID.sh,
# whose output goes to NAME.ID.out beside it; "ID STATUS" is the answer. VM_* are the guest's
# settings, from the kernel's command line and vm_guest.py.
. /.ring-vm/settings.sh
export PATH=$VM_BIN:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8

file_systems() {
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mount -t devtmpfs devtmpfs /dev
    mkdir -p /dev/pts /dev/shm
    mount -t devpts devpts /dev/pts
    for folder in /dev/shm /run /root; do mount -t tmpfs -o mode=0755 tmpfs $folder; done
    chmod 1777 /dev/shm
    mkdir -p "$VM_WORK" /lib/modules
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none work "$VM_WORK"
    if [ -n "$VM_SHARE" ]; then
        mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none share "$VM_SHARE"
    fi
    mount --bind "$VM_MODULES" /lib/modules
}

# Replaced, not written into: the guest's root may not be allowed to read the host's.
own_file() { rm -f "$1" && cat > "$1"; }

names() {
    hostname "$VM_NAME"
    printf '127.0.0.1 localhost\n10.88.0.1 a\n10.88.0.2 b\n' | own_file /etc/hosts
    echo 'root:*:19000::::::' | own_file /etc/shadow # else a locked account keeps ssh out
    grep -q '^sshd:' /etc/passwd || echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin' >> /etc/passwd
    : | own_file /etc/resolv.conf
    rm -f /etc/nologin /run/nologin
}

# Each NIC has an rxe device; MTU 4200 gives it an active MTU of 4096. The other guest's address is
# permanent: after a cable was out, it would be resolved again, and rdma_cm of Linux 6.0 and newer
# ends the connections of a neighbour that changes (RDMA_CM_EVENT_UNREACHABLE).
network() {
    local other=$((3 - VM_NODE))
    ip link set lo up
    modprobe -a crc32_generic virtio_net rdma_rxe rdma_ucm ib_uverbs
    for path in /sys/class/net/eth*; do
        local nic=${path##*/}
        local index=${nic#eth}
        ip link set "$nic" mtu 4200
        ip addr add "10.88.$index.$VM_NODE/24" dev "$nic"
        ip link set "$nic" up
        ip neigh replace "10.88.$index.$other" dev "$nic" nud permanent \
            lladdr "$(printf '02:00:00:00:%02x:%02x' "$index" "$other")"
        rdma link add "rxe$index" type rxe netdev "$nic"
    done
}

ssh_service() {
    mkdir -p /run/sshd /run/keys /root/.ssh
    cp "$VM_WORK"/keys/* /run/keys && chmod 600 /run/keys/* /root/.ssh && chmod 700 /root /root/.ssh
    cp /run/keys/key /root/.ssh/id_ed25519
    cp /run/keys/key.pub /root/.ssh/authorized_keys
    echo "a,b,10.88.0.1,10.88.0.2,10.88.1.1,10.88.1.2 $(cat /run/keys/host.pub)" > /root/.ssh/known_hosts
    /usr/sbin/sshd -f /dev/null -h /run/keys/host -o UsePAM=no -o PermitRootLogin=yes \
        -o KexAlgorithms=curve25519-sha256 -o PidFile=/run/sshd.pid -o SetEnv="\"PATH=$PATH\"" \
        -o UseDNS=no
}

run_one() {
    local script=$VM_WORK/$VM_NAME.$1
    timeout -k 2 "$2" bash "$script.sh" < /dev/null > "$script.out" 2>&1 3>&-
    echo "$1 $?" >&3
}

file_systems
names
network
ulimit -l unlimited
ulimit -c 0
ssh_service
begun=$?
cd "$VM_CWD" || cd /
exec 3<> /dev/ttyS1
stty -F /dev/ttyS1 raw -echo
echo "ready $begun" >&3
while read -r -u 3 id seconds; do
    run_one "$id" "$seconds" &
done
