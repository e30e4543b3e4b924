# SPDX-License-Identifier: Apache-2.0
"""A made /sys, /proc and /etc of a sound machine: an InfiniBand and a RoCE adapter, a GPU on the
switch of the first, two network interfaces. Tests change it before they have it judged."""

import os
import shutil
import struct
import tempfile
from pathlib import Path

IB = "sys/class/infiniband"
PCI = "sys/bus/pci/devices"
NET = "sys/class/net"
GROUP = "sys/fs/cgroup/job"

# Where things are: a switch with GPU and InfiniBand adapter on socket 0, RoCE on socket 1.
SWITCH = ["pci0000:00", "0000:00:01.0", "0000:01:00.0"]
PLACES = {
    "gpu": SWITCH + ["0000:02:00.0", "0000:03:00.0"],
    "mlx5_0": SWITCH + ["0000:02:01.0", "0000:04:00.0"],
    "mlx5_1": ["pci0000:80", "0000:80:01.0", "0000:81:00.0"],
    "mlx5_2": ["pci0000:80", "0000:80:02.0", "0000:82:00.0"],  # where a test adds one
}
LIMITS = {"Max processes": "65536", "Max open files": "4096", "Max locked memory": "unlimited",
          "Max address space": "unlimited"}
COUNTERS = ["counters/symbol_error", "counters/link_downed", "hw_counters/local_ack_timeout_err",
            "hw_counters/packet_seq_err", "hw_counters/rnr_nak_retry_err",
            "hw_counters/out_of_sequence"]
FAST = Path("/dev/shm")  # some hundred small files
EMPTY_GID = ":".join(["0000"] * 8)


def ipv4_gid(last):
    return f"0000:0000:0000:0000:0000:ffff:0a00:{last:04x}"


def config(access_control):
    """A bridge's configuration space: one extended capability before that of access control."""
    space = bytearray(4096)
    struct.pack_into("<HH", space, 0x100, 0x0001, 0x1 | 0x148 << 4)
    struct.pack_into("<HHHH", space, 0x148, 0x000d, 0x1, 0x001f, access_control)
    return bytes(space)


class Tree:
    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="doctor-", dir=FAST if FAST.is_dir() else None))
        self.make_process()
        self.make_cpus()
        self.make_network()
        self.make_adapter("mlx5_0", "InfiniBand", "200 Gb/sec (4X HDR)")
        self.make_adapter("mlx5_1", "Ethernet", "100 Gb/sec (4X EDR)")
        self.make_bus()

    def remove(self):
        shutil.rmtree(self.root)

    # ---- Files

    def write(self, path, content):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            file.write_text(f"{content}\n")

    def write_all(self, folder, **contents):
        for name, content in contents.items():
            self.write(f"{folder}/{name}", content)

    def delete(self, path):
        file = self.root / path
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        else:
            file.unlink()

    def link(self, path, target):
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(os.path.relpath(self.root / target, place.parent))

    # ---- The process and its cgroup

    def make_process(self):
        self.limit()
        self.write("proc/self/status", "Name:\tringinfo\nCapEff:\t0000000000000000\n"
                   "Cpus_allowed_list:\t0-15,32-47")
        self.write("proc/meminfo", "MemTotal:       263000000 kB")
        self.shm("131072000k")
        self.write("proc/self/cgroup", "0::/job")
        self.write("proc/self/mountinfo",
                   "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw")
        self.write_all(GROUP, **{"memory.max": "max", "memory.current": 4096, "pids.max": "max",
                                 "pids.current": 20, "cpu.max": "max 100000"})
        self.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 intel_iommu=on iommu=pt")
        self.write_all("proc/sys/kernel", hostname="node1", osrelease="6.1.0-18-amd64")
        self.write("etc/hosts", "127.0.0.1 localhost\n10.0.0.1 node1.example node1")

    def limit(self, hard=None, **soft):
        """Limits by the last word of their names: limit(memory=65536)."""
        lines = ["Limit                     Soft Limit           Hard Limit           Units"]
        for name, value in LIMITS.items():
            given = soft.get(name.split()[-1])
            value = value if given is None else str(given)
            top = value if given is None or hard is None else str(hard)
            lines.append(f"{name:<25} {value:<20} {top:<20} units")
        self.write("proc/self/limits", "\n".join(lines))

    def shm(self, size):
        self.write("proc/self/mounts", "proc /proc proc rw 0 0\n"
                   f"tmpfs /dev/shm tmpfs rw,nosuid,nodev,size={size} 0 0")

    def orphan(self, pid, name, parent=1):
        self.write(f"proc/{pid}/status",
                   f"Name:\t{name}\nPPid:\t{parent}\nUid:\t{os.getuid()}\t0\t0\t0")
        self.write(f"proc/{pid}/comm", name)
        self.write(f"proc/{pid}/maps", "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libring.so.0.2.0")

    # ---- Cores

    def make_cpus(self):
        self.write("sys/devices/system/cpu/smt/active", 1)
        for node in range(2):
            self.write(f"sys/devices/system/node/node{node}/cpulist", "0-15")
        for cpu in range(4):
            self.governor(cpu, "performance", "acpi-cpufreq")

    def governor(self, cpu, governor, driver, **more):
        self.write_all(f"sys/devices/system/cpu/cpu{cpu}/cpufreq", scaling_governor=governor,
                       scaling_driver=driver, **more)

    # ---- Interfaces

    def make_network(self):
        self.interface("lo", 0x9, speed=-1, mtu=65536, physical=False)
        self.interface("eth0", 0x1003, speed=10000, mtu=1500)
        self.interface("eth1", 0x1003, speed=100000, mtu=9000)
        self.interface("docker0", 0x1003, speed=-1, mtu=1500, physical=False, carrier=0)
        self.routes("eth0 00000000 0100000A 0003 0 0 0 00000000 0 0 0",
                    "eth0 0000000A 00000000 0001 0 0 0 00FFFFFF 0 0 0",
                    "eth1 0000010A 00000000 0001 0 0 0 00FFFFFF 0 0 0")

    def interface(self, name, flags, *, speed, mtu, physical=True, carrier=1):
        self.write_all(f"{NET}/{name}", flags=hex(flags), speed=speed, mtu=mtu, carrier=carrier,
                       operstate="up" if carrier else "down", duplex="full")
        self.write_all(f"{NET}/{name}/statistics", rx_errors=0, tx_errors=0)
        if physical:
            self.write(f"{NET}/{name}/device/vendor", "0x8086")

    def routes(self, *lines):
        self.write("proc/net/route", "\n".join(
            ["Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT", *lines]))

    # ---- Adapters

    def make_adapter(self, name, layer, rate):
        roce = layer == "Ethernet"
        self.write_all(f"{IB}/{name}", hca_type="MT4123", board_id=f"BOARD_{layer}",
                       fw_ver="20.31.1014")
        port = f"{IB}/{name}/ports/1"
        self.write_all(port, state="4: ACTIVE", phys_state="5: LinkUp", link_layer=layer, rate=rate,
                       sm_lid="0x0" if roce else "0x1", lid="0x0" if roce else "0x2")
        self.write_all(f"{port}/pkeys", **{"0": "0xffff", "1": "0x0000"})
        for counter in COUNTERS:
            self.write(f"{port}/{counter}", 3)
        if roce:
            self.gids(name, [("fe80:0000:0000:0000:0000:00ff:fe00:0001", "IB/RoCE v1", "eth1"),
                             ("fe80:0000:0000:0000:0000:00ff:fe00:0001", "RoCE v2", "eth1"),
                             (ipv4_gid(0x101), "RoCE v2", "eth1")])
            self.write(f"{IB}/{name}/tc/1/traffic_class", "Global tclass=106")
        else:
            self.gids(name, [("fe80:0000:0000:0000:0002:c903:0000:0001", "IB/RoCE v1", "")])
        self.link(f"{IB}/{name}/device", "sys/devices/" + "/".join(PLACES[name]))

    def gids(self, name, rows):
        port = f"{IB}/{name}/ports/1"
        for index, (gid, kind, netdev) in enumerate(rows + [(EMPTY_GID, "", "")]):
            self.write(f"{port}/gids/{index}", gid)
            self.write(f"{port}/gid_attrs/types/{index}", kind)
            self.write(f"{port}/gid_attrs/ndevs/{index}", netdev)

    def port(self, name, **files):
        self.write_all(f"{IB}/{name}/ports/1", **files)

    # ---- The bus

    def make_bus(self):
        for name in "gpu", "mlx5_0", "mlx5_1":
            self.make_place(name)
        self.pci("gpu", **{"class": "0x030200", "vendor": "0x10de"})
        self.write("proc/driver/nvidia/version",
                   "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08")
        self.write("sys/module/nvidia_peermem/version", "535.161.08")

    def make_place(self, name):
        place = PLACES[name]
        for depth in range(2, len(place) + 1):
            self.make_device("sys/devices/" + "/".join(place[:depth]), depth == len(place))
        self.pci(name, numa_node=0 if place[0] == "pci0000:00" else 1)

    def make_device(self, folder, end):
        if (self.root / folder / "config").exists():
            return
        self.write_all(folder, vendor="0x15b3", current_link_width=16, max_link_width=16,
                       current_link_speed="16.0 GT/s PCIe", max_link_speed="16.0 GT/s PCIe",
                       config=bytes(64) if end else config(0), **{"class": "0x060400"})
        self.link(f"{PCI}/{os.path.basename(folder)}", folder)

    def pci(self, name, **files):
        self.write_all(f"{PCI}/{PLACES[name][-1]}", **files)

    def move_gpu(self):
        """To the other socket, where no adapter of its switch is."""
        self.delete(f"{IB}/mlx5_1")
        old = self.root / "sys/devices" / "/".join(PLACES["gpu"])
        new = self.root / "sys/devices/pci0000:c0/0000:c0:01.0" / PLACES["gpu"][-1]
        new.parent.mkdir(parents=True)
        old.rename(new)
        self.delete(f"{PCI}/{PLACES['gpu'][-1]}")
        self.link(f"{PCI}/{PLACES['gpu'][-1]}", new.relative_to(self.root))
        self.pci("gpu", numa_node=1)
