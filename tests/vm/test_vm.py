#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the judgements of the cases in guests with made-up results: each can pass and fail."""

import json
import tempfile
import types
import unittest
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from unittest import mock

import vm_cases
import vm_faults
import vm_kernel
import vm_packages
from vm_guest import Failed
from vm_places import Place, SshPlace, Traffic, settings

LOST = "ringperf: rank {}: rank {} ({}, pid 7) was lost: no sign of life for 4 s"


def guest(name="a"):
    return types.SimpleNamespace(name=name, clear=lambda: None)


class Carriers(unittest.TestCase):
    """10 MB were to go: (packets, bytes over NICs, bytes over lo)."""

    def judge(self, place, transport, *counted):
        try:
            place.check_carrier(transport, Traffic(*counted), 10000000)
        except Failed:
            return False
        return True

    def test_one_guest(self):
        one = Place(guest())
        for transport, right in (("shm", (0, 0, 9000)), ("tcp", (0, 0, 11000000)),
                                 ("verbs", (2500, 0, 9000))):
            for other in ("shm", "tcp", "verbs"):
                self.assertEqual(self.judge(one, other, *right), other == transport)
        self.assertFalse(self.judge(one, "verbs", 2500, 0, 11000000))
        self.assertFalse(self.judge(one, "ucx", 2400, 0, 9000))

    def test_two_guests(self):
        two = Place(guest("a"), guest("b"))
        for transport, right in (("tcp", (0, 11000000, 0)), ("ucx", (2500, 11000000, 0))):
            for other in ("tcp", "ucx"):
                self.assertEqual(self.judge(two, other, *right), other == transport)
        self.assertFalse(self.judge(two, "tcp", 0, 9000000, 0))


class Launches(unittest.TestCase):
    def test_environment(self):
        self.assertEqual(settings("tcp"), {"RING_TRANSPORT": "tcp"})
        self.assertEqual(settings("shm,ucx", {"A": 1}),
                         {"RING_TRANSPORT": "shm,ucx", "A": 1, "UCX_TLS": "rc_verbs,self"})

    def test_ports_differ(self):
        two = Place(guest("a"), guest("b"))
        first, second = two.launches({}, 1), two.launches({}, 1)
        self.assertTrue(first[1].endswith("--node_rank 1"))
        self.assertNotEqual(first[0], second[0])

    def test_ssh(self):
        self.assertEqual(SshPlace(guest("a"), guest("b")).launches({"A": "x"}, 2),
                         ["ringrun -H a:2,b:2 --tag-output -x A=x"])

    def test_usable(self):
        report = {"transports": {"tcp": "works; x", "ucx": "no device; y"}}
        here = guest()
        here.run = lambda _: json.dumps(report)
        place = Place(here)
        self.assertEqual(place.usable(("tcp", "ucx", "verbs")), ["tcp"])
        self.assertIn("no device", place.why_not("ucx"))
        self.assertIn("knows no", place.why_not("verbs"))


class Told(unittest.TestCase):
    def told(self, *lines):
        return vm_faults.told(types.SimpleNamespace(guest=guest(), out="\n".join(lines)), "b")

    def test_both(self):
        first = "[0] " + LOST.format(0, 2, "b")
        self.assertEqual(self.told("[0] # table", first, "[1] " + LOST.format(1, 3, "b")), first)

    def test_one_was_stopped(self):
        line = "[1] " + LOST.format(1, 3, "b")
        self.assertEqual(self.told("[0] # table", line, "ringrun: stopping the other 1"), line)

    def test_none(self):
        self.assertRaises(Failed, self.told, "[0] # table")
        self.assertRaises(Failed, self.told, "[1] " + LOST.format(1, 0, "a"))
        self.assertRaises(Failed, self.told, LOST.format(1, 3, "b"))  # not a rank's


class Trainings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.files = Path(folder.name) / "run"
        self.training = vm_cases.Training(2, 16)

    def compare(self, name, losses, ranks):
        lines = [{"run": {}}] + [{"step": 1 + i, "loss": loss, "grad_norm": 1.5}
                                 for i, loss in enumerate(losses)]
        text = "".join(json.dumps(line) + "\n" for line in lines + [{"after_epoch": 1}])
        Path(f"{self.files}.jsonl").write_text(text, encoding="utf-8")
        for rank, parameters in enumerate(ranks):
            Path(f"{self.files}.{rank}").write_bytes(parameters)
        return self.training.compare(name, self.files)

    def test_same(self):
        self.compare("first", (0.5, 0.25), (b"p", b"p"))
        self.assertIn("bit for bit as first", self.compare("second", (0.5, 0.25), (b"p", b"p")))

    def test_different(self):
        self.assertRaises(Failed, self.compare, "ranks", (0.5, 0.25), (b"p", b"q"))
        self.assertRaises(Failed, self.compare, "steps", (0.5,), (b"p", b"p"))
        self.compare("first", (0.5, 0.25), (b"p", b"p"))
        self.assertRaises(Failed, self.compare, "loss", (0.5, 0.2500001), (b"p", b"p"))
        self.assertRaises(Failed, self.compare, "parameters", (0.5, 0.25), (b"q", b"q"))


class Suites(unittest.TestCase):
    def run_cases(self, *acts):
        suite = vm_cases.Suite()
        with redirect_stdout(StringIO()) as out:
            for act in acts:
                suite.case("name", act, Place(guest()))
            return suite.status(), out.getvalue()

    def test_status(self):
        good = mock.Mock(return_value="well")
        bad = mock.Mock(side_effect=Failed("reason"))
        self.assertEqual(self.run_cases(good)[0], 0)
        status, out = self.run_cases(good, bad, good)
        self.assertEqual(status, 1)
        self.assertIn("reason", out)
        self.assertIn("2 passed, 1 failed", out)
        self.assertEqual(self.run_cases()[0], 1)

    def test_only(self):
        act = mock.Mock(return_value="well")
        with redirect_stdout(StringIO()):
            vm_cases.Suite(r"^two\.").case("one.tcp", act, Place(guest()))
        act.assert_not_called()


class Packages(unittest.TestCase):
    def test_tools(self):
        with mock.patch.dict(vm_packages.HOST_TOOLS, {"no-such-tool": "its-package"}):
            with self.assertRaisesRegex(vm_packages.Missing, "not installed: .*its-package"):
                vm_packages.check_tools()

    def test_failing_command(self):
        with self.assertRaisesRegex(vm_packages.Missing, "sh -c: last words"):
            vm_packages.command(["sh", "-c", "echo more; echo last words; exit 1"])

    def test_module_order(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "modules.dep").write_text(
                "kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko kernel/fs/netfs.ko\n"
                "kernel/net/9p/9pnet.ko:\nkernel/fs/netfs.ko:\n"
                "kernel/fs/overlayfs/overlay.ko:\n", encoding="ascii")
            self.assertEqual([Path(file).stem for file in vm_kernel.module_files(Path(folder))],
                             ["netfs", "9pnet", "9p", "overlay"])


if __name__ == "__main__":
    unittest.main()
