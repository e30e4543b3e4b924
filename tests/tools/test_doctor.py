#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ringinfo doctor of one host: made machines with one fault each, which must be named, and nothing
else with it.

    test_doctor.py SOURCE RINGINFO
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from doctor_tree import GROUP, IB, NET, PCI, Tree, config, ipv4_gid

SOURCE, RINGINFO = Path(sys.argv[1]), sys.argv[2]
SECONDS = 110  # that a host may take; it takes far less than a tenth
ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
V1 = [("fe80:0000:0000:0000:0000:00ff:fe00:0001", "IB/RoCE v1", "eth1"),
      (ipv4_gid(0x101), "IB/RoCE v1", "eth1")]
LOCAL = [("fe80:0000:0000:0000:0000:00ff:fe00:0001", "RoCE v2", "eth1")]
NO_NETDEV = [(ipv4_gid(0x101), "RoCE v2", "")]


class Fault:
    """A fault, and the row that must report it."""

    def __init__(self, break_it, name, level, why, command, **more):
        self.break_it, self.name, self.level, self.why, self.command = (break_it, name, level, why,
                                                                       command)
        self.options, self.env = more.get("options", []), more.get("env", {})
        self.limits = more.get("limits")


def seed(path, content):
    return lambda tree: tree.write(path, content)


def port(name, **files):
    return lambda tree: tree.port(name, **files)


def gids(rows):
    def put(tree):
        for folder in ("gids", "gid_attrs"):
            tree.delete(f"{IB}/mlx5_1/ports/1/{folder}")
        tree.gids("mlx5_1", rows)
        tree.write(f"{NET}/eth1/mtu", 9000)
    return put


def limit(**values):
    return lambda tree: tree.limit(**values)


def both(*parts):
    def put(tree):
        for part in parts:
            part(tree)
    return put


def sister(rate, firmware="20.31.1014"):
    """A second adapter of the InfiniBand one's board."""
    def put(tree):
        tree.make_place("mlx5_2")
        tree.make_adapter("mlx5_2", "InfiniBand", rate)
        tree.write(f"{IB}/mlx5_2/fw_ver", firmware)
    return put


CONTAINER = seed(".dockerenv", "")
FAULTS = {
    # limits
    "memlock": Fault(limit(memory=65536), "memlock", "fail", "registering memory .* will fail",
                     r"memlock unlimited.*limits\.d/ring-memlock\.conf"),
    "memlock of Debian": Fault(limit(memory=8 << 20), "memlock", "warn", "cannot be registered",
                               "memlock unlimited"),
    "memlock, soft": Fault(limit(memory=65536, hard="unlimited"), "memlock", "fail", ".",
                           "^ulimit -l unlimited$"),
    "memlock in a container": Fault(both(limit(memory=65536), CONTAINER), "memlock", "fail", ".",
                                    "docker run --ulimit memlock=-1"),
    "nofile": Fault(limit(files=256), "nofile", "warn", "descriptors", "nofile 4096"),
    "nofile, soft": Fault(limit(files=32, hard=4096), "nofile", "fail", ".",
                          "^ulimit -n 4096$"),
    "nproc": Fault(limit(processes=100), "nproc", "warn", "threads", "nproc 4096"),
    "address space": Fault(limit(space=1 << 30, hard="unlimited"), "address_space", "warn",
                           "map each other's memory", "^ulimit -v unlimited$"),
    "pids": Fault(seed(f"{GROUP}/pids.max", 64), "pids", "warn", "unable to start their threads",
                  "^echo max | sudo tee /sys/fs/cgroup/job/pids.max$"),
    # memory
    "no memory to share": Fault(lambda tree: None, "ring_mem_alloc", "fail", "ulimit|limit",
                                "ulimit -f unlimited", limits="ulimit -f 0"),
    "shm": Fault(lambda tree: tree.shm("65536k"), "/dev/shm", "warn", "data loaders",
                 "mount -o remount,size=1g /dev/shm"),
    "shm in a container": Fault(both(lambda tree: tree.shm("65536k"), CONTAINER), "/dev/shm",
                                "warn", ".", "docker run --shm-size=1g"),
    "cgroup's memory": Fault(seed(f"{GROUP}/memory.max", 500 << 20), "cgroup", "warn", "must fit",
                             "^echo max | sudo tee /sys/fs/cgroup/job/memory.max$"),
    "cgroup's memory, all": Fault(seed(f"{GROUP}/memory.max", 8192), "cgroup", "fail", "killed",
                                  "memory.max"),
    # cpu
    "quota": Fault(seed(f"{GROUP}/cpu.max", "400000 100000"), "quota", "warn", "the 32 CPUs",
                   "ringrun -n 4 "),
    "governor": Fault(lambda tree: tree.governor(2, "powersave", "acpi-cpufreq"), "governor",
                      "warn", "1 CPU in a power-saving mode",
                      "echo performance .*scaling_governor"),
    "preference": Fault(lambda tree: tree.governor(0, "powersave", "intel_pstate",
                                                   energy_performance_preference="power"),
                        "governor", "warn", ".", "energy_performance_preference"),
    "ranks": Fault(lambda tree: None, "ranks", "warn", "more than the 32 CPUs", "ringrun -n 32 ",
                   env={"RING_RANK": "0", "RING_SIZE": "64", "RING_LOCAL_SIZE": "64",
                        "RING_LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}),
    # network
    "interface down": Fault(seed(f"{NET}/eth0/carrier", 0), "eth0 link", "warn", "no carrier",
                            "ip link set eth0 up"),
    "slow interface": Fault(seed(f"{NET}/eth0/speed", 100), "eth0 link", "warn", "1 Gbit/s",
                            "ethtool -s eth0 autoneg on"),
    "half duplex": Fault(seed(f"{NET}/eth0/duplex", "half"), "eth0 link", "warn", "half duplex",
                         "ethtool -s eth0 autoneg on"),
    "no way out": Fault(lambda tree: tree.routes(), "for_other_hosts", "warn", "only ranks of this",
                        "ip link set"),
    "hostname": Fault(seed("etc/hosts", "127.0.0.1 localhost\n127.0.1.1 node1"), "hostname", "warn",
                      "a loopback address", r"s/\^127\\\.0\\\.1\\\.1.* /etc/hosts$"),
    "hostname of localhost": Fault(seed("etc/hosts", "127.0.0.1 localhost node1 other"), "hostname",
                                   "warn", "a loopback address", "sed .*node1.* /etc/hosts"),
    # adapters
    "polling": Fault(port("mlx5_0", state="1: DOWN", phys_state="2: Polling"), "mlx5_0:1 link",
                     "warn", "other end of the cable", "mlx5_0"),
    "disabled": Fault(port("mlx5_0", state="1: DOWN", phys_state="3: Disabled"), "mlx5_0:1 link",
                      "warn", "switched off", "ibportstate -C mlx5_0 -D 0 1 enable"),
    "port down": Fault(port("mlx5_1", state="1: DOWN"), "mlx5_1:1 state", "warn", "not ACTIVE",
                       "ip link set eth1 up"),
    "no subnet manager": Fault(port("mlx5_0", state="2: INIT", sm_lid="0x0"), "mlx5_0:1 state",
                               "fail", "no subnet manager", "systemctl start opensm"),
    "armed": Fault(port("mlx5_0", state="3: ARMED"), "mlx5_0:1 state", "warn", "has not finished",
                   "systemctl restart opensm"),
    "one lane": Fault(port("mlx5_0", rate="50 Gb/sec (1X HDR)"), "mlx5_0:1 rate", "warn",
                      "one of four lanes", "ibportstate -C mlx5_0 -D 0 1 reset"),
    "lowest speed": Fault(port("mlx5_0", rate="10 Gb/sec (4X SDR)"), "mlx5_0:1 rate", "warn",
                          "SDR", "reset"),
    "below its sister": Fault(sister("100 Gb/sec (4X EDR)"), "mlx5_2:1 rate", "warn",
                              "same board has 200 Gb/s", "ibportstate -C mlx5_2"),
    "RoCE below its sister": Fault(seed(f"{IB}/mlx5_1/board_id", "BOARD_InfiniBand"),
                                   "mlx5_1:1 rate", "warn", "same board has 200 Gb/s",
                                   "^sudo ethtool -s eth1 autoneg on"),
    "wanted partition of RoCE": Fault(seed(f"{IB}/mlx5_0/ports/1/pkeys/1", "0x8001"),
                                      "mlx5_1:1 pkeys", "fail", "not in the partition",
                                      "^ringinfo doctor ", options=["--pkey", "0x8001"]),
    "mtu of RoCE": Fault(seed(f"{NET}/eth1/mtu", 1500), "mlx5_1:1 mtu", "warn", "packets of 1024",
                         "ip link set eth1 mtu 4200"),
    "no partition": Fault(seed(f"{IB}/mlx5_0/ports/1/pkeys/0", "0x8005"), "mlx5_0:1 pkeys", "fail",
                          "not in the partition", "0x7fff.*partitions.conf"),
    "wanted partition": Fault(seed(f"{IB}/mlx5_1/ports/1/pkeys/1", "0x8001"), "mlx5_0:1 pkeys",
                              "fail", "not in the partition", "0x0001.*partitions.conf",
                              options=["--pkey", "0x8001"]),
    "limited member": Fault(seed(f"{IB}/mlx5_0/ports/1/pkeys/0", "0x7fff"), "mlx5_0:1 pkeys",
                            "warn", "limited members", "ALL=full"),
    "no GID": Fault(lambda tree: tree.delete(f"{IB}/mlx5_0/ports/1/gids"), "mlx5_0:1 gids",
                    "fail", "without an address", "ip link set"),
    "RoCE v1": Fault(gids(V1), "mlx5_1:1 gids", "warn", "v1 only", "ROCE_CONTROL=2"),
    "GID without interface": Fault(gids(NO_NETDEV), "mlx5_1:1 gid_netdev", "fail",
                                   "Invalid argument", "rdma system set netns shared"),
    "link-local": Fault(gids(LOCAL), "mlx5_1:1 gid_address", "warn", "is link-local",
                        "ip address add ADDRESS/24 dev eth1"),
    "traffic class": Fault(seed(f"{IB}/mlx5_1/tc/1/traffic_class", "Global tclass=0"),
                           "mlx5_1:1 traffic_class", "warn", "drops its packets",
                           "echo 106 | sudo tee /sys/class/infiniband/mlx5_1/tc/1/traffic_class"),
    "no traffic class": Fault(lambda tree: tree.delete(f"{IB}/mlx5_1/tc"),
                              "mlx5_1:1 traffic_class", "warn", ".", "export NCCL_IB_TC=106"),
    "firmware": Fault(sister("200 Gb/sec (4X HDR)", "20.30.0001"), "mlx5_2 firmware", "warn",
                      "mlx5_0 has firmware 20.31.1014", "mstflint -d 0000:82:00.0"),
    # GPUDirect
    "no driver": Fault(lambda tree: tree.delete("proc/driver/nvidia/version"), "driver", "fail",
                       "programs cannot use them", "apt install nvidia-driver"),
    "no peer memory": Fault(lambda tree: tree.delete("sys/module/nvidia_peermem"), "peer_memory",
                            "warn", "copied through host memory", "modprobe nvidia-peermem"),
    "x8": Fault(seed(f"{PCI}/0000:03:00.0/current_link_width", 8), "0000:03:00.0 pcie", "warn",
                "x8 instead of x16", "lspci -vv -s 0000:03:00.0"),
    "old slot": Fault(seed(f"{PCI}/0000:81:00.0/current_link_speed", "8.0 GT/s PCIe"),
                      "0000:81:00.0 pcie", "warn", "8 instead of 16 GT/s", "0000:81:00.0"),
    "far apart": Fault(lambda tree: tree.move_gpu(), "0000:03:00.0 distance", "warn",
                       "NUMA node 1 and the adapter on node 0", "node 1"),
    "access control": Fault(seed(f"{PCI}/0000:02:01.0/config", config(0x1d)), "acs", "warn",
                            "through the processor", r"setpci -s 0000:02:01.0 ECAP_ACS\+6.w=0000"),
    "iommu": Fault(seed("proc/cmdline", "root=/dev/sda1 intel_iommu=on"), "iommu", "warn",
                   "translates", "iommu=pt"),
    # software
    "setting": Fault(lambda tree: None, "settings", "fail", "RING_TIMEOUT=soon",
                     "^unset RING_TIMEOUT$", env={"RING_TIMEOUT": "soon"}),
    "variable": Fault(lambda tree: None, "RING_TIMOUT variables", "warn",
                      "did you mean RING_TIMEOUT", "export RING_TIMEOUT=",
                      env={"RING_TIMOUT": "3"}),
    "left to systemd": Fault(lambda tree: (tree.orphan(4711, "ringtrain", 900),
                                           tree.write("proc/900/comm", "systemd")), "leftovers",
                             "warn", "holds cores", "^kill 4711$"),
    "left behind": Fault(lambda tree: tree.orphan(4711, "ringtrain"), "leftovers", "warn",
                         "holds cores", "^kill 4711$"),
}


def run(tree, *options, env=None, limits=None, status=None):
    """@return (exit status, rows by name that are not right, all rows)."""
    command = [RINGINFO, "doctor", "--json", "--root", str(tree.root), *options]
    if limits:
        command = ["bash", "-c", f"{limits}; exec \"$@\"", "bash", *command]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                          env={**ENVIRONMENT, **(env or {})})
    took = time.monotonic() - begin
    try:
        rows = json.loads(done.stdout)["findings"]
    except ValueError:
        raise AssertionError(f"no JSON: {done.stdout!r} {done.stderr!r}") from None
    wrong = {row["name"]: row for row in rows if row["level"] in ("warn", "fail")}
    return done.returncode, wrong, rows, took


class Made(unittest.TestCase):
    def setUp(self):
        self.tree = Tree()
        self.addCleanup(self.tree.remove)

    def see(self, fault, status, wrong, value=""):
        self.assertEqual(list(wrong), [fault.name], value)
        row = wrong[fault.name]
        self.assertEqual(row["level"], fault.level)
        self.assertRegex(row["why"], fault.why)
        self.assertRegex(row["command"], fault.command)
        self.assertEqual(status, {"warn": 1, "fail": 3}[fault.level])


class Sound(Made):
    """Nothing is blamed that is right."""

    def test_sound(self):
        status, wrong, rows, took = run(self.tree, "--seconds", "0.1")
        self.assertEqual((status, wrong), (0, {}))
        self.assertLess(took, SECONDS)
        names = {row["name"] for row in rows}
        for name in ("memlock", "mlx5_0:1 state", "mlx5_1:1 gids", "0000:03:00.0 distance", "acs",
                     "mlx5_0:1 counters", "eth1 link", "cpus", "0000:03:00.0 gpus", "versions"):
            self.assertIn(name, names)
        values = {row["name"]: row["value"] for row in rows}
        self.assertEqual(values["0000:03:00.0 distance"], "PIX to 0000:04:00.0")
        self.assertEqual(values["mlx5_1:1 gids"], "3; the best is 2, RoCE v2 of eth1")
        self.assertEqual(values["mlx5_1:1 mtu"], "4096, from MTU 9000 of eth1")
        self.assertEqual(values["acs"], "off")

    def test_nothing_there(self):
        """An empty tree: what is not known is no fault."""
        for path in list(self.tree.root.iterdir()):
            self.tree.delete(path.name)
        status, wrong, _, _ = run(self.tree)
        self.assertEqual((status, list(wrong)), (1, ["for_other_hosts"]))

    def test_all_ports_dead(self):
        """One port without cable is common; no port with one is not."""
        for name in ("mlx5_0", "mlx5_1"):
            self.tree.port(name, state="1: DOWN", phys_state="2: Polling")
        status, wrong, _, _ = run(self.tree)
        self.assertEqual({(name, row["level"]) for name, row in wrong.items()},
                         {("mlx5_0:1 link", "fail"), ("mlx5_1:1 link", "fail")})
        self.assertEqual(status, 3)

    def test_what_excuses(self):
        """No fault: limits without an adapter, or with the right to exceed them; frequency that the
        processor chooses; dma-buf; a container's bridge without carrier; a GPU that idles."""
        self.tree.limit(memory=65536)
        self.tree.write("proc/self/status", "CapEff:\t0000000000004000\nCpus_allowed_list:\t0-31")
        self.tree.governor(0, "powersave", "intel_pstate",
                           energy_performance_preference="balance_performance")
        self.tree.delete("sys/module/nvidia_peermem")
        self.tree.write("proc/driver/nvidia/version",
                        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.161.08")
        self.tree.pci("gpu", current_link_speed="2.5 GT/s PCIe")
        self.assertEqual(run(self.tree)[:2], (0, {}))
        self.tree.write("proc/self/status", "CapEff:\t0\nCpus_allowed_list:\t0-31")
        self.assertEqual(list(run(self.tree)[1]), ["memlock"])
        self.tree.delete(IB)
        self.tree.orphan(4711, "ringtrain", 900)
        self.tree.write("proc/900/comm", "bash")
        self.assertEqual(run(self.tree)[:2], (0, {}))

    def test_traffic_class_set(self):
        self.tree.delete(f"{IB}/mlx5_1/tc")
        self.assertEqual(run(self.tree, env={"NCCL_IB_TC": "106"})[:2], (0, {}))

    def test_access_control_unreadable(self):
        """A file that only root may read is not a finding."""
        for bridge in ("00:01.0", "01:00.0", "02:00.0", "02:01.0", "80:01.0"):
            self.tree.write(f"{PCI}/0000:{bridge}/config", bytes(64))
        status, wrong, rows, _ = run(self.tree)
        self.assertEqual((status, wrong), (0, {}))
        row = next(row for row in rows if row["name"] == "acs")
        self.assertEqual(row["level"], "")
        self.assertRegex(row["value"], "sudo ringinfo doctor")


class Rising(Made):
    """Counters that rise between two readings."""

    def rise(self, file):
        stop = threading.Event()

        def count():
            value = 3
            while not stop.wait(0.01):
                value += 1
                new = self.tree.root / "new"
                new.write_text(f"{value}\n")
                new.rename(self.tree.root / file)
        thread = threading.Thread(target=count)
        thread.start()
        try:
            return run(self.tree, "--seconds", "0.5")
        finally:
            stop.set()
            thread.join()

    def test_port(self):
        for counter in ("counters/symbol_error", "counters/link_downed",
                        "hw_counters/local_ack_timeout_err", "hw_counters/packet_seq_err",
                        "hw_counters/rnr_nak_retry_err", "hw_counters/out_of_sequence"):
            with self.subTest(counter):
                status, wrong, _, _ = self.rise(f"{IB}/mlx5_0/ports/1/{counter}")
                self.see(Fault(None, "mlx5_0:1 counters", "warn", "no counter rises",
                               "perfquery -C mlx5_0 -P 1"), status, wrong)
                self.assertRegex(wrong["mlx5_0:1 counters"]["value"],
                                 rf"^{os.path.basename(counter)} \+\d+$")

    def test_interface(self):
        status, wrong, _, _ = self.rise(f"{NET}/eth0/statistics/rx_errors")
        self.see(Fault(None, "eth0 errors", "warn", "damaged or lost", "show eth0"), status, wrong)


class Secret(Made):
    def secret(self, mode, size):
        with tempfile.NamedTemporaryFile() as file:
            file.write(os.urandom(size))
            file.flush()
            os.chmod(file.name, mode)
            return run(self.tree, env={"RING_SECRET_FILE": file.name}), file.name

    def test_good(self):
        (status, wrong, _, _), _ = self.secret(0o600, 32)
        self.assertEqual((status, wrong), (0, {}))

    def test_open(self):
        (status, wrong, _, _), name = self.secret(0o644, 32)
        self.see(Fault(None, "secret", "fail", "others may read", f"^chmod 600 {name}$"), status,
                 wrong)

    def test_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o700)
            status, wrong, _, _ = run(self.tree, env={"RING_SECRET_FILE": folder})
        self.see(Fault(None, "secret", "fail", "is not a file", "^export RING_SECRET_FILE="),
                 status, wrong)

    def test_of_another(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a file away")
        with tempfile.NamedTemporaryFile() as file:
            file.write(os.urandom(32))
            file.flush()
            os.chown(file.name, 65534, 65534)
            status, wrong, _, _ = run(self.tree, env={"RING_SECRET_FILE": file.name})
        self.see(Fault(None, "secret", "fail", "belongs to user 65534", "^sudo chown "), status,
                 wrong)

    def test_short(self):
        (status, wrong, _, _), name = self.secret(0o600, 3)
        self.see(Fault(None, "secret", "fail", "3 bytes", "head -c 32 /dev/urandom"), status, wrong)


class Program(Made):
    def text(self, *options):
        return subprocess.run([RINGINFO, *options], capture_output=True, text=True, timeout=120,
                              env=ENVIRONMENT)

    def test_text(self):
        self.tree.shm("65536k")
        done = self.text("doctor", "--root", str(self.tree.root))
        self.assertEqual(done.returncode, 1)
        lines = done.stdout.split("\n")
        at = next(i for i, line in enumerate(lines) if "/dev/shm" in line)
        self.assertRegex(lines[at], r"^  /dev/shm +WARN room for 64 MiB$")
        self.assertRegex(lines[at + 1], "^ +libring does not need it")
        self.assertRegex(lines[at + 2], r"^ +\$ sudo mount -o remount,size=1g /dev/shm$")
        self.assertEqual(lines[-2], "0 failures, 1 warning; see FAIL and WARN above.")

    def test_this_machine(self):
        """Whatever it is: each row that is not right has a reason and a command."""
        begin = time.monotonic()
        done = self.text("doctor", "--json")
        self.assertLess(time.monotonic() - begin, SECONDS)
        self.assertIn(done.returncode, (0, 1, 3))
        for row in json.loads(done.stdout)["findings"]:
            if row["level"] in ("warn", "fail"):
                self.assertTrue(row["why"] and row["command"], row)

    def trials(self, faults):
        """@return the rows of the ports of the double of libibverbs, by name."""
        library = Path(RINGINFO).resolve().parents[1] / "tests/fake-ibverbs"
        if not library.is_dir():
            self.skipTest("this build has no double of libibverbs")
        done = subprocess.run([RINGINFO, "doctor", "--json"], capture_output=True, text=True,
                              timeout=120, env={**ENVIRONMENT, "LD_LIBRARY_PATH": str(library),
                                                "FAKE_IBVERBS": faults})
        rows = {row["name"]: row for row in json.loads(done.stdout)["findings"]}
        return {name: row for name, row in rows.items() if name.endswith("self_test")}

    def test_ports(self):
        rows = self.trials("devices=2")
        self.assertEqual(set(rows), {"fake0:1 self_test", "fake1:1 self_test"})
        for row in rows.values():
            self.assertEqual(row["level"], "ok", row)
            self.assertRegex(row["value"], r"^round trip [\d.e+]+ us "
                             r"\(99th percentile: [\d.e+]+ us\), [\d.e+]+ GB/s to itself$")

    def test_broken_ports(self):
        for faults, why in (("fail=post_send:3", "fake0:1"), ("memlock=100000", "ulimit -l"),
                            ("memlock=8000000", "cannot register a buffer of 8 MiB"),
                            ("fail=create_qp:1", "queue pair"), ("fail=poll_cq:2", "fake0")):
            with self.subTest(faults):
                row = self.trials(faults)["fake0:1 self_test"]
                self.assertEqual(row["level"], "fail", row)
                self.assertRegex(row["why"], why)
                self.assertRegex(row["command"], "^ulimit -l unlimited " if "memlock" in faults
                                 else "^ibv_rc_pingpong -d fake0 ")

    def test_interface_wanted(self):
        done = subprocess.run([RINGINFO, "doctor"], capture_output=True, text=True, timeout=120,
                              env={**ENVIRONMENT, "RING_SOCKET_IFNAME": "nowhere"})
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stdout, "for_other_hosts +FAIL none\n +RING_SOCKET_IFNAME=nowhere: ")
        done = subprocess.run([RINGINFO, "doctor"], capture_output=True, text=True, timeout=120,
                              env={**ENVIRONMENT, "RING_SOCKET_IFNAME": "lo"})
        self.assertRegex(done.stdout, "for_other_hosts +OK   lo, 127.0.0.1")
        done = subprocess.run([RINGINFO, "doctor"], capture_output=True, text=True, timeout=120,
                              env={**ENVIRONMENT, "NCCL_SOCKET_IFNAME": "nowhere"})
        self.assertNotIn("nowhere", done.stdout)
        self.assertRegex(done.stderr, "warn: NCCL_SOCKET_IFNAME=nowhere is not used: ")

    def test_usage(self):
        for options, text in ((["doctr"], "did you mean 'doctor'"),
                              (["--seconds", "1"], "only for ringinfo doctor"),
                              (["doctor", "env"], "only one of the words"),
                              (["doctor", "--pkey", "0x10000"], "partition in hexadecimal"),
                              (["doctor", "--ssh-port", "22"], "need --hosts"),
                              (["doctor", "--hosts", "a", "--hostfile", "b"], "give one"),
                              (["doctor", "--hosts", "a", "--seconds", "1"], "for one host"),
                              (["doctor", "--hosts", "-oProxy"], "not a host name")):
            done = self.text(*options)
            self.assertEqual(done.returncode, 2, options)
            self.assertRegex(done.stderr, text)

    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([RINGINFO, "doctor", "--root", str(self.tree.root)], stdout=full,
                                  stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, "not all of it could be written")

    def test_every_check_has_a_fault(self):
        """Who adds a check adds a machine that it is for. Some are tested by themselves, or only
        tell."""
        files = sorted((SOURCE / "libring/tools/info/doctor").glob("check_*.c"))
        tables = "".join(file.read_text() for file in files)
        checks = set(re.findall(r'^    \{OF_\w+, "\w+", "([^"]+)", check_\w+\},$', tables, re.M))
        self.assertGreater(len(checks), 30)
        seen = {fault.name.split()[-1] for fault in FAULTS.values()}
        seen |= {"self_test", "counters", "errors", "secret", "cpus", "gpus", "versions"}
        self.assertEqual(checks - seen, set())


class Mended(Made):
    """Commands that change files only are run on the made machine: then nothing is wrong."""

    def test_mended(self):
        for what in ("pids", "cgroup's memory", "governor", "preference", "hostname",
                     "hostname of localhost"):
            with self.subTest(what):
                tree = Tree()
                self.addCleanup(tree.remove)
                FAULTS[what].break_it(tree)
                command = run(tree)[1][FAULTS[what].name]["command"]
                command = re.sub(r"(?<= )/(?=etc/|sys/)", f"{tree.root}/", command)
                command = command.replace("sudo ", "").replace("ADDRESS", "10.0.0.1")
                subprocess.run(["bash", "-c", command], check=True, stdout=subprocess.DEVNULL)
                self.assertEqual(run(tree)[:2], (0, {}), command)


def test_of(fault):
    def test(self):
        fault.break_it(self.tree)
        status, wrong, rows, _ = run(self.tree, *fault.options, env=fault.env, limits=fault.limits)
        self.see(fault, status, wrong, rows)
    return test


class Faults(Made):
    pass


for what, one in FAULTS.items():
    setattr(Faults, "test_" + re.sub(r"\W+", "_", what), test_of(one))

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
