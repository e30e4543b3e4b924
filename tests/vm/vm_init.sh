#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# The first process of a guest: makes the root file system, which is the host's / with programs that
# it lacks and a memory file system over it, and goes on there with vm_agent.sh. VM_NAME and VM_NODE
# come from the kernel's command line.
busybox mkdir -p /proc /host /layer /rw /new
busybox mount -t proc proc /proc
while read -r module; do busybox insmod "$module"; done < /modules.list
for tag in host layer; do
    busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro $tag /$tag
done
busybox mount -t tmpfs -o size=75% tmpfs /rw
busybox mkdir /rw/upper /rw/work
busybox mount -t overlay -o lowerdir=/layer:/host,upperdir=/rw/upper,workdir=/rw/work overlay /new
busybox umount /proc
busybox mkdir /new/.ring-vm
busybox cp /agent.sh /settings.sh /new/.ring-vm
exec busybox switch_root /new /.ring-vm/agent.sh
