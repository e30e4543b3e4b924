#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ringinfo doctor of several hosts. An ssh of the test runs the far side here, for each host with
programs of its own: a ringinfo that reads the host's made tree, and where a test wants it a
ringperf that prints what a slow or broken network would make it print.

    test_doctor_hosts.py BIN [CLASS[.CASE]...]
"""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from doctor_tree import IB, NET, Tree, ipv4_gid

BIN = Path(sys.argv[1])
SECONDS = 110  # that two hosts may take
AT_ONCE = 12  # cases
LONG = ("test_mute", "test_rising", "test_port_in_use", "test_by_jobs")  # begin first
ports = iter(random.sample(range(20000, 29000), 2000))  # each is tried once

SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$(echo "$1" | tr : _)
shift
case $host in
down) echo "ssh: connect to host down port 22: No route to host" >&2; exit 255 ;;
bare) echo "sh: 1: ringrun: not found" >&2; exit 127 ;;
mute) exec sleep 1000 ;;
esac
echo "Welcome to $host"
cd / && exec env -i PATH="WORK/$host:/usr/bin:/bin" $(cat "WORK/$host/environment") sh -c "$*"
"""
RINGINFO = """#!/bin/sh
sh WORK/HOST/before
"BIN/ringinfo" "$@" --root WORK/HOST/tree | sed -f WORK/HOST/change
"""
RINGPERF = """#!/bin/sh
[ "$RANK" = 0 ] || exit 0
[ "HOST" != "DEAF" ] || { echo "ringperf: rank 1 did not come within 6 s" >&2; exit 3; }
case $RING_TRANSPORT$* in
verbs*) if [ -n "COMPLAINT" ]; then echo "ringperf: COMPLAINT" >&2; exit 3; fi ;;
esac
case $RING_TRANSPORT$* in
verbs*--iters*) echo '{"bytes": 1000000, "time_us": FAST, "wrong": 0}' ;;
verbs*)
   echo '{"bytes": 8, "time_us": QUICK, "wrong": 0}'
   echo '{"bytes": 65536, "time_us": 10, "wrong": 0}' ;;
*--iters*) echo '{"bytes": 1000000, "time_us": LONG, "wrong": 0}' ;;
*) echo '{"bytes": 8, "time_us": SHORT, "wrong": 0}'
   echo '{"bytes": 65536, "time_us": 1000, "wrong": 0}' ;;
esac
"""


class Hosts(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.work)
        self.program("ssh", "ssh", SSH)
        self.a, self.b = self.host("a"), self.host("b")

    def program(self, folder, name, text, **words):
        path = self.work / folder / name
        path.parent.mkdir(exist_ok=True)
        for word, value in {"WORK": self.work, "BIN": BIN, "HOST": folder, **words}.items():
            text = text.replace(word, str(value))
        path.write_text(text)
        path.chmod(0o755)

    def host(self, name):
        self.program(name, "ringinfo", RINGINFO)
        for file in "before", "change", "environment":
            (self.work / name / file).write_text("")
        tree = Tree()
        self.addCleanup(tree.remove)
        (self.work / name / "tree").symlink_to(tree.root)
        tree.write("proc/sys/kernel/hostname", name)
        return tree

    def network(self, *, short=20, long=1000, quick=1.5, fast=85, deaf="nobody", complaint=""):
        """A ringperf that finds the network like this: times of 8 and 10^6 bytes in us, by TCP and
        by RDMA, where the program prints a complaint instead."""
        for name in "a", "b", "c":
            self.program(name, "ringperf", RINGPERF, SHORT=short, LONG=long, DEAF=deaf,
                         QUICK=quick, FAST=fast, COMPLAINT=complaint)

    def adapters(self, **speeds):
        """Gbit/s of what has passed its own test on each host."""
        for name, speed in speeds.items():
            change = f's/"alike":\t{{/"alike":\t{{ "rdma_speed": {speed},/\n'
            (self.work / name / "change").write_text(change)

    def environment(self):
        """Hosts have made-up names, of which a name server may know nothing, or be silent."""
        return {"PATH": f"{self.work}/ssh:/usr/bin:/bin", "RES_OPTIONS": "timeout:1 attempts:1"}

    @staticmethod
    def free_port():
        """Below those that the system gives to connections, which would take it meanwhile."""
        for port in ports:
            with socket.socket() as free:
                try:
                    free.bind(("0.0.0.0", port))
                    return port
                except OSError:
                    continue
        raise AssertionError("no free port")

    def start(self, *options, hosts="a,b", env=None):
        return subprocess.run(
            [BIN / "ringinfo", "doctor", "--hosts", hosts, "--master-port", str(self.free_port()),
             "--remote-ringrun", BIN / "ringrun", *options], capture_output=True, text=True,
            timeout=120, cwd=self.work,
            env={**self.environment(), "LC_ALL": "C.UTF-8", **(env or {})})

    def run_doctor(self, *options, **more):
        """@return (exit status, rows that are not right by section and name, all by the same)."""
        done = self.start("--json", *options, **more)
        try:
            rows = json.loads(done.stdout)["findings"]
        except ValueError:
            self.fail(f"no JSON: {done.stdout!r} {done.stderr!r}")
        rows = {(row["section"], row["name"]): row for row in rows}
        wrong = {key: row for key, row in rows.items() if row["level"] in ("warn", "fail")}
        return done.returncode, wrong, rows

    def see(self, section, name, level, value, why, command, **more):
        status, wrong, _ = self.run_doctor(**more)
        self.assertEqual(list(wrong), [(section, name)], wrong)
        row = wrong[section, name]
        self.assertEqual(row["level"], level)
        self.assertRegex(row["value"], value)
        self.assertRegex(row["why"], why)
        self.assertRegex(row["command"], command)
        self.assertEqual(status, {"warn": 1, "fail": 3}[level])


class Sound(Hosts):
    def test_by_jobs(self):
        """With real jobs between the two. How fast this machine is says nothing."""
        begin = time.monotonic()
        _, wrong, rows = self.run_doctor()
        self.assertLess(time.monotonic() - begin, SECONDS)
        self.assertEqual(set(wrong) - {("pairs", "a - b time"), ("pairs", "a - b speed")}, set(),
                         wrong)
        self.assertEqual(rows["pairs", "a - b reach"]["level"], "ok")
        self.assertRegex(rows["pairs", "a - b time"]["value"], r"^round trip [\d.]+ [um]s$")
        self.assertRegex(rows["pairs", "a - b speed"]["value"],
                         r"^[\d.]+ Gbit/s each way of a link of 10 Gbit/s$")
        self.assertRegex(rows["a", "checks"]["value"], r"^\d\d are OK$")

    def test_text(self):
        self.network()
        done = self.start()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for line in ("between hosts", "  libring                  OK   0.2.0",
                     "  link_layers              OK   InfiniBand Ethernet",
                     "  a - b time               OK   round trip 40 us",
                     "  a - b speed              OK   8 Gbit/s each way of a link of 10 Gbit/s",
                     "  b counters               OK   no counter rose during the test",
                     "Nothing is wrong."):
            self.assertIn(line, done.stdout.split("\n"))

    def test_three_and_a_file(self):
        self.host("c")
        self.network()
        (self.work / "file").write_text("a slots=1\nb\nc\n")
        done = subprocess.run(
            [BIN / "ringinfo", "doctor", "--hostfile", "file", "--remote-ringrun", BIN / "ringrun"],
            capture_output=True, text=True, timeout=120, cwd=self.work,
            env=self.environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for pair in "a - b", "a - c", "b - c":
            self.assertRegex(done.stdout, f"{pair} reach +OK")


class Rdma(Hosts):
    def test_sound(self):
        self.network()
        self.adapters(a=100, b=200)
        status, wrong, rows = self.run_doctor()
        self.assertEqual((status, wrong), (0, {}))
        self.assertEqual(rows["pairs", "a - b rdma time"]["value"], "round trip 3 us")
        self.assertEqual(rows["pairs", "a - b rdma speed"]["value"], "94.1 Gbit/s each way")

    def test_software(self):
        self.network(fast=20000)
        self.adapters(a=0, b=0)
        status, wrong, rows = self.run_doctor()
        self.assertEqual((status, wrong), (0, {}))
        self.assertEqual(rows["pairs", "a - b rdma speed"]["value"],
                         "0.4 Gbit/s each way in software")

    def test_one_has_none(self):
        self.network(complaint="not to be called")
        self.adapters(a=100)
        status, wrong, rows = self.run_doctor()
        self.assertEqual((status, wrong), (0, {}))
        self.assertNotIn(("pairs", "a - b rdma time"), rows)

    def test_slow(self):
        self.network(fast=100.1)
        self.adapters(a=100, b=100)
        self.see("pairs", "a - b rdma speed", "warn", "^79.9 Gbit/s", "80 % of the 100 Gbit/s",
                 "^iblinkinfo ")

    def test_broken(self):
        self.network(complaint="verbs link to rank 1: transport retry counter exceeded")
        self.adapters(a=100, b=100)
        status, wrong, _ = self.run_doctor()
        self.assertEqual(status, 3)
        self.assertEqual(set(wrong), {("pairs", "a to b rdma"), ("pairs", "b to a rdma")})
        row = wrong["pairs", "b to a rdma"]
        self.assertRegex(row["why"], "a rank on b could not connect to one on a: .*retry counter")
        self.assertRegex(row["command"], "^ssh a ib_write_bw & sleep 1; ssh b ib_write_bw a ")

    def test_no_memory(self):
        self.network(complaint="cannot register 1608 KiB for a link with adapter mlx5_0")
        self.adapters(a=100, b=100)
        _, wrong, _ = self.run_doctor()
        self.assertRegex(wrong["pairs", "b to a rdma"]["command"], "^ulimit -l unlimited")


class Unlike(Hosts):
    """One thing differs between the two: both values are told."""

    def setUp(self):
        super().setUp()
        self.network()

    def differ(self, name, level, value, command, **more):
        self.see("between hosts", name, level, value, ".", command, **more)

    def test_libring(self):
        (self.work / "b/change").write_text('s/"libring":\t"[^"]*"/"libring":\t"0.1.9"/\n')
        self.differ("libring", "fail", r"^a: \d.*; b: 0\.1\.9$", "cmake --install")

    def test_kernel(self):
        self.b.write("proc/sys/kernel/osrelease", "5.10.0")
        self.differ("kernel", "warn", "^a: 6.1.0-18-amd64; b: 5.10.0$", "apt")

    def test_setting(self):
        (self.work / "b/environment").write_text("RING_ALGO=ring")
        self.differ("settings", "warn", "^a: none_set; b: RING_ALGO=ring$", "grep -rn")

    def test_setting_of_both(self):
        status, wrong, rows = self.run_doctor(env={"RING_ALGO": "ring"})
        self.assertEqual((status, wrong), (0, {}))
        self.assertEqual(rows["between hosts", "settings"]["value"], "RING_ALGO=ring")

    def test_mtu(self):
        self.b.write(f"{NET}/eth0/mtu", 9000)
        self.differ("mtu", "warn", "^a: 1500; b: 9000$", "ip link set eth0 mtu 1500")

    def test_speed(self):
        self.b.write(f"{NET}/eth0/speed", 1000)
        self.differ("speed", "warn", "^a: 10000; b: 1000$", "ethtool -s eth0 autoneg on")

    def test_networks(self):
        self.b.routes("eth0 00000000 0100000A 0003 0 0 0 00000000 0 0 0",
                      "eth0 0000020A 00000000 0001 0 0 0 00FFFFFF 0 0 0")
        self.differ("networks", "warn", r"^a: 10\.0\.0\.0/24; b: 10\.2\.0\.0/24$",
                    "RING_SOCKET_IFNAME")

    def test_link_layers(self):
        self.a.delete(f"{IB}/mlx5_0")
        self.b.delete(f"{IB}/mlx5_1")
        _, wrong, _ = self.run_doctor()
        row = wrong["between hosts", "link_layers"]
        self.assertEqual((row["level"], row["value"]), ("fail", "a: Ethernet; b: InfiniBand"))
        self.assertRegex(row["command"], "LINK_TYPE_P1=2")

    def test_gid_types(self):
        for tree, kind in ((self.a, "IB/RoCE v1"), (self.b, "RoCE v2")):
            for folder in "gids", "gid_attrs":
                tree.delete(f"{IB}/mlx5_1/ports/1/{folder}")
            tree.gids("mlx5_1", [(ipv4_gid(0x101), kind, "eth1")])
        _, wrong, _ = self.run_doctor()
        row = wrong["between hosts", "gid_types"]
        self.assertEqual((row["level"], row["value"]), ("fail", "a: IB/RoCE_v1; b: RoCE_v2"))
        self.assertRegex(row["command"], "roce_mode=2")

    def test_subnet_prefixes(self):
        self.b.write(f"{IB}/mlx5_0/ports/1/gids/0", "fe80:0000:0000:0001:0002:c903:0000:0002")
        self.differ("subnet_prefixes", "fail", "b: fe80:0000:0000:0001$", "opensm.conf")

    def test_rates(self):
        self.b.port("mlx5_0", rate="100 Gb/sec (4X EDR)")
        self.differ("rates", "warn", "b: 100_Gb/sec", "iblinkinfo")

    def test_roce_mtus(self):
        self.b.write(f"{NET}/eth1/mtu", 4200)
        self.assertEqual(self.run_doctor()[:2], (0, {}))  # both are 4096
        self.b.write(f"{NET}/eth1/mtu", 1500)
        _, wrong, _ = self.run_doctor()
        row = wrong["between hosts", "roce_mtus"]
        self.assertEqual(row["value"], "a: 4096; b: 1024")
        self.assertRegex(row["command"], "ip link set eth1 mtu 4200")

    def test_traffic_classes(self):
        self.b.write(f"{IB}/mlx5_1/tc/1/traffic_class", "Global tclass=96")
        self.differ("traffic_classes", "warn", "^a: 106; b: 96$", "NCCL_IB_TC=106")

    def test_firmware(self):
        for name in "mlx5_0", "mlx5_1":
            self.b.write(f"{IB}/{name}/fw_ver", "20.30.1000")
        self.differ("firmware", "warn", r"b: MT4123:20\.30\.1000$", "mstflint")

    def test_driver(self):
        self.b.write("proc/driver/nvidia/version", "NVRM version: 470.1")
        self.differ("nvidia_driver", "warn", r"b: NVRM version: 470\.1$", "nvidia-driver")

    def test_clock(self):
        (self.work / "b/change").write_text('s/"time":\t[0-9.]*/"time":\t1000000000.5/\n')
        self.differ("b clock", "warn", "within", "ssh b sudo timedatectl set-ntp true")

    def test_glibc(self):
        (self.work / "b/change").write_text('s/"glibc":\t"[^"]*"/"glibc":\t"2.31"/\n')
        self.differ("glibc", "warn", r"; b: 2\.31$", "apt")


class Between(Hosts):
    """Faults that only show between the two hosts."""

    def test_one_way_only(self):
        """Ranks on a cannot be reached; those on b can."""
        self.network(deaf="a")
        self.see("pairs", "b to a", "fail", "no working connection by TCP",
                 "on b could not connect to one on a: ringperf: rank 1 did not come",
                 r'^ssh a "sudo iptables .*getent hosts b')

    def test_other_way_only(self):
        self.network(deaf="b")
        self.see("pairs", "a to b", "fail", "no working connection by TCP",
                 "on a could not connect to one on b",
                 r'^ssh b "sudo iptables .*getent hosts a')

    def test_port_in_use(self):
        with socket.socket(socket.AF_INET6) as other:
            other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            other.bind(("::", 0))
            other.listen()
            port = other.getsockname()[1]
            _, wrong, _ = self.run_doctor("--master-port", str(port))
        self.assertEqual(set(wrong), {("pairs", "a to b"), ("pairs", "b to a")})
        for row in wrong.values():
            self.assertRegex(row["why"], f"another program listens on port {port}")
            self.assertRegex(row["command"], "ss -ltnp")

    def test_slow_answers(self):
        self.network(short=800)
        self.see("pairs", "a - b time", "warn", "^round trip 1.6 ms$", "more than 1 ms",
                 "RING_SOCKET_IFNAME")

    def test_slow(self):
        self.network(long=4000)
        self.see("pairs", "a - b speed", "warn", "^2 Gbit/s each way of a link of 10 Gbit/s$",
                 "less than half", "RING_CHANNELS")

    def test_rising(self):
        """The port of b counts up whenever the host is asked."""
        self.network()
        for counter in ("counters/symbol_error", "counters/link_downed",
                        "hw_counters/local_ack_timeout_err", "hw_counters/packet_seq_err",
                        "hw_counters/rnr_nak_retry_err", "hw_counters/out_of_sequence"):
            with self.subTest(counter):
                file = f"{self.b.root}/{IB}/mlx5_0/ports/1/{counter}"
                (self.work / "b/before").write_text(
                    f"n=$(cat {file}); echo $((n + 7)) >{file}\n")
                self.see("during the test", "b counters", "warn",
                         rf"^mlx5_0:1 {os.path.basename(counter)} \+7$", "while the hosts were",
                         "ssh b ringinfo doctor --seconds 10")

    def test_fault_of_one(self):
        """A host's own fault has the host's name."""
        self.network()
        self.b.shm("65536k")
        self.see("b", "/dev/shm", "warn", "64 MiB", "data loaders", "remount,size=1g")


class Unreachable(Hosts):
    def test_down(self):
        self.network()
        self.see("down", "answer", "fail", "none", "No route to host", "^ssh down true ",
                 hosts="a,down,b")

    def test_mute(self):
        begin = time.monotonic()
        self.network()
        self.see("mute", "answer", "fail", "none", "no answer in time", "^ssh mute true ",
                 hosts="a,mute")
        self.assertLess(time.monotonic() - begin, SECONDS)
        left = subprocess.run(["pgrep", "-f", f"{self.work}/ssh/ssh .* mute "],
                              capture_output=True, text=True).stdout
        self.assertEqual(left, "")

    def test_address(self):
        """Hosts by their addresses, also IPv6's."""
        self.network()
        for name in "10.1.1.1", "fe80__1%eth0":
            self.host(name)
            shutil.copy(self.work / "a/ringperf", self.work / name)
        status, wrong, rows = self.run_doctor(hosts="10.1.1.1,[fe80::1%eth0]")
        self.assertEqual((status, wrong), (0, {}))
        self.assertIn(("pairs", "10.1.1.1 - fe80::1%eth0 reach"), rows)

    def test_no_json(self):
        self.network()
        self.program("b", "ringinfo", "#!/bin/sh\necho '{\"findings\": 3}'\n")
        self.see("b", "answer", "fail", "none", "ended with 0 and printed nothing",
                 "^ssh b ringinfo doctor --json ")

    def test_not_there(self):
        """The remedy is that of the reason: ssh works."""
        self.network()
        self.see("bare", "answer", "fail", "none", "ringrun is not there under the same path",
                 "^sudo cmake --install build ", hosts="a,bare")

    def test_pair_without_a_reason(self):
        """No firewall is blamed for a program that ends."""
        self.network()
        for name in "ab":
            self.program(name, "ringperf", "#!/bin/sh\nexit 9\n")
        _, wrong, _ = self.run_doctor()
        self.assertEqual(set(wrong), {("pairs", "a to b"), ("pairs", "b to a")})
        for row in wrong.values():
            self.assertRegex(row["why"], "ended with exit code 9")
            self.assertRegex(row["command"], "^ringrun -H [ab],[ab] ringperf sendrecv ")

    def test_one_host_twice(self):
        done = self.start(hosts="localhost,127.0.0.1")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "ringinfo: 'localhost' and '127.0.0.1' are the same host; "
                                      "name it once, with all its slots\n")

    def test_hostile_text(self):
        """Another host's answer is shown without control characters."""
        self.network()
        (self.work / "b/change").write_text('s/"value":\t"4096 open/"value":\t"\\\\u001b[2J4096/\n'
                                            's/"kernel":\t"/&\\\\u001b[2J/\n')
        done = self.start()
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("?[2J6.1.0", done.stdout)


def cases(suite):
    for part in suite:
        yield from cases(part) if isinstance(part, unittest.TestSuite) else [part]


def run_case(case):
    result = unittest.TestResult()
    case.run(result)
    return result


def main():
    """Several cases at once: each mostly waits, for answers that come after a while."""
    loader, module = unittest.defaultTestLoader, sys.modules["__main__"]
    suite = (loader.loadTestsFromNames(sys.argv[2:], module) if sys.argv[2:]
             else loader.loadTestsFromModule(module))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(run_case, sorted(
            cases(suite), key=lambda case: case.id().split(".")[-1] not in LONG)))
    for result in results:
        for case, text in result.failures + result.errors:
            print(f"{case}\n{text}")
    print(f"{sum(result.testsRun for result in results)} cases")
    return 0 if all(result.wasSuccessful() for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
