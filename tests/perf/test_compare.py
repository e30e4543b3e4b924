#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The comparisons' arithmetic and tables; builds.py with programs of known speed.

    test_compare.py SOURCE
"""
import argparse
import json
import math
import os
import stat
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import xml.etree.ElementTree as xml
from pathlib import Path

COMPARE = Path(sys.argv[1]) / "perf" / "compare"
sys.path.insert(0, str(COMPARE))

import builds
import compare_page
import figures
import programs
import small

# Stands in for ringrun (starts what follows) and for ringperf (a fixed bandwidth).
RINGRUN = "#!/bin/sh\nwhile [ \"${1%ringperf}\" = \"$1\" ]; do shift; done\nexec \"$@\"\n"
RINGPERF = f"""#!{sys.executable} -IS
import json, os, sys
if "--help" in sys.argv:
    print("collectives: all_reduce barrier" + HELP)
    sys.exit()
assert "--buffer" not in sys.argv or "--buffer" in HELP
value = lambda name: sys.argv[sys.argv.index(name) + 1]
size = int(value("-b"))
with open(value("--json"), "w") as file:
    while size <= int(value("-e")):
        for in_place in (False, True):
            file.write(json.dumps({{"bytes": size, "in_place": in_place, "wrong": WRONG,
                                   "time_us": (size or 8) / SPEED}}) + "\\n")
        size = size * int(value("-f")) or int(value("-e")) + 1
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(stat.S_IRWXU)


class Figures(unittest.TestCase):
    def test_sizes(self):
        self.assertEqual([figures.parse_size(text) for text in ("8", "64K", "1m", "1.5K")],
                         [8, 65536, 2**20, 1536])
        for text in ("", "K", "8Q", "x"):
            self.assertRaises(argparse.ArgumentTypeError, figures.parse_size, text)
        self.assertEqual([figures.size_name(size) for size in (8, 1000, 1024, 2**21, 3 * 2**30)],
                         ["8", "1000", "1K", "2M", "3G"])
        self.assertEqual(figures.sizes_between(8, 100, 4), [8, 32, 100])
        self.assertEqual(figures.sizes_between(8, 32, 4), [8, 32])
        self.assertEqual([figures.counted(n, "rank") for n in (1, 2)], ["1 rank", "2 ranks"])

    def test_everyone_is_first_once(self):
        names = ["a", "b", "c"]
        orders = [figures.rotated(names, number) for number in range(3)]
        self.assertEqual([order[0] for order in orders], names)
        self.assertEqual(orders[1], ["b", "c", "a"])
        self.assertEqual(figures.rotated(names, 3), names)
        self.assertEqual(figures.rotated([], 1), [])

    def test_medians_and_means_leave_out_what_is_missing(self):
        self.assertEqual(figures.median([3, None, 1, 2]), 2)
        self.assertEqual(figures.median(iter([1, 2])), 1.5)
        self.assertIsNone(figures.median([None]))
        self.assertAlmostEqual(figures.geometric_mean([0.5, None, 2, 8]), 2)
        self.assertIsNone(figures.geometric_mean([]))

    def test_ratios_are_taken_within_a_round(self):
        rounds = [{"a": 2.0, "b": 4.0}, {"a": 1.0}, {"a": 10.0, "b": 5.0}]
        self.assertEqual(figures.speeds(rounds, "a", "b"), [2.0, None, 0.5])
        self.assertEqual(figures.fastest(rounds, ["b", "c", "a"]), "a")
        self.assertIsNone(figures.fastest(rounds, ["c"]))

    def test_an_interval_holds_what_is_likely(self):
        self.assertEqual(figures.bootstrap([[2.0] * 5], figures.median_of_one), (2.0, 2.0))
        low, high = figures.bootstrap([[0.9, 1.0, 1.0, 1.0, 1.1]], figures.median_of_one)
        self.assertTrue(0.9 <= low <= 1.0 <= high <= 1.1 and low < high)
        self.assertIsNone(figures.bootstrap([[None, None]], figures.median_of_one))
        self.assertIsNone(figures.bootstrap([], figures.mean_of_medians))

    def test_an_interval_is_wide_for_normal_noise(self):
        """About 95 of 100 intervals hold the true median."""
        import random
        source, held = random.Random(7), 0
        for seed in range(100):
            sample = [source.gauss(1, 0.1) for _ in range(15)]
            low, high = figures.bootstrap([sample], figures.median_of_one, 200, seed)
            held += low <= 1 <= high
        self.assertTrue(85 <= held <= 100, held)

    def test_a_mean_draws_the_same_rounds_of_every_cell(self):
        up, down = [1.0, 2.0, 4.0], [1.0, 0.5, 0.25]
        row = figures.row_summary([up, down])
        self.assertAlmostEqual(row["ratio"], 1)
        self.assertTrue(all(math.isclose(end, 1) for end in row["interval"]))

    def test_text(self):
        self.assertEqual(figures.number(None), "-")
        self.assertEqual(figures.interval_text(figures.cell_summary([1.0, 1.0])),
                         "1.00 [1.00 1.00]")
        self.assertEqual(figures.interval_text(figures.cell_summary([None])), "-")
        self.assertEqual(figures.table([["a", "bcd"], ["ef", "g"]]), " a  bcd\nef    g")


class Page(unittest.TestCase):
    def row(self, ranks, size, **times):
        return {"ranks": ranks, "bytes": size, "time_us": times, "vs_best_peer": {"ring": 2.0},
                "vs_limit": {"ring": None}}

    def page(self, *rows, names=("limit", "ring", "a<b")):
        text = compare_page.page("A & B", ["fast > slow"], rows, list(names), ["ring"])
        return xml.fromstring(text.removeprefix("<!DOCTYPE html>\n"))

    def curves(self, page):
        return [element for element in page.iter("path") if element.get("class") == "curve"]

    def test_a_line_for_each_contender_in_two_charts_a_number_of_ranks(self):
        page = self.page(self.row(2, 8, ring=1.0, limit=0.5), self.row(2, 64, ring=2.0, limit=0.5),
                         self.row(4, 8, ring=3.0, **{"a<b": 4.0}))
        self.assertEqual(len(list(page.iter("svg"))), 4)
        self.assertEqual(len(self.curves(page)), 8)
        self.assertEqual([line.get("stroke-dasharray") is not None
                          for line in self.curves(page)[:2]], [True, False])
        self.assertIn("a<b us", ["".join(cell.itertext()) for cell in page.iter("th")])
        self.assertEqual(["".join(cell.itertext()) for cell in page.iter("td")][:7],
                         ["2", "8", "0.50", "1.00", "-", "2.00", "-"])

    def test_places_are_logarithmic(self):
        axis = compare_page.Axis([1, 100], 0, 90, 10)
        self.assertEqual([round(axis.at(value)) for value in (1, 10, 100)], [0, 45, 90])
        self.assertEqual(compare_page.Axis([8], 0, 1, 2).ticks(10), [8, 16])
        self.assertEqual(compare_page.Axis([1, 1024], 0, 1, 2).ticks(5), [1, 4, 16, 64, 256, 1024])

    def test_bandwidth_is_of_the_bus(self):
        self.assertAlmostEqual(compare_page.bus_bandwidth(4, 2**20, 1000.0), 1.5 * 2**20 / 1e6)

    def test_nothing_measured_has_no_chart(self):
        self.assertEqual(list(self.page(self.row(2, 8)).iter("svg")), [])

    def test_what_has_no_logarithm_is_left_out(self):
        page = self.page(self.row(1, 8, ring=1.0), self.row(1, 0, ring=1.0))
        self.assertEqual(len(self.curves(page)), 1)


class Programs(unittest.TestCase):
    def test_failures_name_the_error(self):
        with self.assertRaisesRegex(programs.Failed, "status 3: an error here"):
            programs.run(["sh", "-c", "echo an error here >&2; echo after >&2; exit 3"])
        with self.assertRaisesRegex(programs.Failed, "No such file"):
            programs.run(["/nonexistent/program"])

    def test_json_is_found_among_other_lines(self):
        self.assertEqual(programs.json_lines('warning\n{"a": 1}\n\n{"b": 2}\n'),
                         [{"a": 1}, {"b": 2}])

    def test_builds_and_prefixes(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            write(root / "source/libring/include/ring/ring.h", "")
            write(root / "out/libring.so", "")
            write(root / "out/CMakeCache.txt", f"A:B=c\nCMAKE_HOME_DIRECTORY:X={root}/source\n")
            self.assertEqual(programs.Build("b", root / "out").places(),
                             (root / "source/libring/include", root / "out"))
            write(root / "usr/include/ring/ring.h", "")
            write(root / "usr/lib/x86_64-linux-gnu/libring.so", "")
            self.assertEqual(programs.Build("b", root / "usr").places(),
                             (root / "usr/include", root / "usr/lib/x86_64-linux-gnu"))
            with self.assertRaisesRegex(programs.Absent, "neither a build folder"):
                programs.Build("b", root / "source").places()

    def test_what_is_not_installed_is_absent(self):
        gone = programs.Mpi("gone", ["mpicc.gone"], ["mpirun.gone"], ["libgone-dev", "gone"],
                            "-bind-to")
        with self.assertRaisesRegex(programs.Absent,
                                    "^mpicc.gone is not installed; install libgone-dev$"):
            gone.compile("out", "source.c")
        self.assertRaises(programs.Absent, programs.IntelMpi("/nonexistent").compile, "out", "s.c")

    def fake(self, folder, name, script):
        write(Path(folder) / name, f"#!/bin/sh\n{script}\n")
        (Path(folder) / name).chmod(0o755)

    def test_what_is_missing_names_its_package(self):
        gone = programs.Mpi("gone", ["mpicc.gone"], ["mpirun.gone"], ["libgone-dev", "gone"],
                            "-bind-to")
        with tempfile.TemporaryDirectory() as folder, \
                unittest.mock.patch.dict(os.environ, PATH=folder):
            with self.assertRaisesRegex(programs.Failed, "^cc: .*; install gcc$"):
                programs.run(["cc"])
            with self.assertRaisesRegex(programs.Absent, "^c\\+\\+: .*; install g\\+\\+$"):
                programs.Gloo().compile("out", "source.cc")
            self.fake(folder, "mpicc.gone", "echo 'fatal error: mpi.h: No file' >&2; exit 1")
            with self.assertRaisesRegex(programs.Absent,
                                        "^mpirun.gone is not installed; install gone$"):
                gone.compile("out", "source.c")
            self.fake(folder, "mpirun.gone", "")
            with self.assertRaisesRegex(programs.Absent,
                                        "^mpi.h is not installed; install libgone-dev$"):
                gone.compile("out", "source.c")
            self.fake(folder, "mpicc.gone", "echo 'error: no compiler' >&2; exit 1")
            with self.assertRaisesRegex(programs.Absent, "status 1: error: no compiler$"):
                gone.compile("out", "source.c")
            self.fake(folder, "c++", "echo 'error: gloo/allreduce.h: No file' >&2; exit 1")
            with self.assertRaisesRegex(programs.Absent, "; install libgloo-dev$"):
                programs.Gloo().compile("out", "source.cc")

    def test_ranks_are_bound_if_they_fit(self):
        cores = len(os.sched_getaffinity(0))
        intel = programs.IntelMpi("/opt/impi")
        self.assertIn("I_MPI_PIN_DOMAIN", intel.start(cores, "program"))
        self.assertIn("I_MPI_PIN", intel.start(cores + 1, "program"))
        self.assertEqual([programs.binding(ranks) for ranks in (1, cores, cores + 1)],
                         ["core", "core", "none"])


class Small(unittest.TestCase):
    def options(self):
        return types.SimpleNamespace(ops=["broadcast", "barrier"], sizes=[8, 64], ranks=2,
                                     libring=[("old", "x"), ("new", "y")])

    def test_cells(self):
        keys = small.all_cells(self.options())
        self.assertEqual(len(keys), 2 * 2 + 2)
        self.assertIn(("barrier", "row", 0), keys)

    def test_builds_are_compared_with_the_first_by_kind_of_buffer(self):
        ours = ["old-shared", "old-plain", "new-shared", "old-again-plain"]
        self.assertEqual(small.pairs_of(self.options(), ours),
                         [("new-shared", "old-shared"), ("old-again-plain", "old-plain")])

    def test_a_cell_is_compared_with_its_best_peer(self):
        rounds = [{"old-shared": 2.0, "new-shared": 1.0, "a": 4.0, "b": 3.0}] * 3
        cell = small.summarize_cell(("broadcast", "meet", 8), rounds, ["old-shared", "new-shared"],
                                    ["a", "b"], [("new-shared", "old-shared")])
        self.assertEqual(cell["peer"], "b")
        self.assertEqual(cell["vs_peer"]["new-shared"], {"ratio": 3.0, "interval": (3.0, 3.0)})
        self.assertEqual(cell["vs_first"]["new-shared"]["ratio"], 2.0)
        rows = small.summarize_rows([cell], [("new-shared", "old-shared")], ["new-shared"])
        self.assertEqual([row["op"] for row in rows], ["broadcast", "broadcast", "all", "all"])
        self.assertAlmostEqual(rows[2]["vs_peer"]["new-shared"]["ratio"], 3.0)

    def test_wrong_values_and_loose_ranks_are_problems(self):
        cells, problems = {("barrier", "meet", 0): [{}]}, []
        line = {"op": "barrier", "mode": "meet", "bytes": 0, "time_us": 1.0, "wrong": 2}
        options = self.options()
        options.ranks = 1
        small.note(cells, {"bound": False}, "x", [line], options, problems)
        self.assertEqual(cells["barrier", "meet", 0], [{"x": 1.0}])
        self.assertEqual(len(problems), 2)


class Builds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)

    def build(self, name, speed, help_text=" --buffer", wrong=0):
        write(self.work / name / "bin" / "ringrun", RINGRUN)
        write(self.work / name / "bin" / "ringperf", RINGPERF.replace("SPEED", str(speed))
              .replace("HELP", repr(help_text)).replace("WRONG", str(wrong)))

    def compare(self):
        done = subprocess.run(
            [sys.executable, COMPARE / "builds.py", "--old", self.work / "old", "--new",
             self.work / "new", "--rounds", "2", "--max", "4M", "--ranks", "2", "--transports",
             "shm", "--json", self.work / "json"], capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.returncode, done.stdout, json.loads((self.work / "json").read_text())

    def test_a_build_is_as_fast_as_itself(self):
        self.build("old", 100)
        self.build("new", 100)
        status, said, found = self.compare()
        self.assertEqual((status, found["slower"], found["noise"]), (0, [], []), said)
        self.assertEqual([row["row"] for row in found["rows"]],
                         ["all_reduce shm 2 ranks shared", "all_reduce shm 2 ranks plain",
                          "barrier shm 2 ranks shared"])
        self.assertEqual(len(found["rows"][0]["cells"]), 4 * 2)

    def test_a_slower_build_fails(self):
        self.build("old", 100)
        self.build("new", 96)
        status, said, found = self.compare()
        self.assertEqual(status, 1)
        self.assertEqual(len(found["slower"]), 2 * (8 + 1) + 2 + 1)
        self.assertIn("64K in place: 0.96 [0.96 0.96] is below 0.97", said)

    def test_a_row_that_is_a_little_slower_fails(self):
        self.build("old", 1000)
        self.build("new", 985)
        status, _, found = self.compare()
        self.assertEqual(status, 1)
        self.assertTrue(all("geometric mean" in line for line in found["slower"]))

    def test_wrong_values_are_a_problem(self):
        self.build("old", 100)
        self.build("new", 100, wrong=3)
        status, said, _ = self.compare()
        self.assertEqual(status, 1)
        self.assertIn("3 wrong values", said)

    def test_an_older_build_has_fewer_options(self):
        self.build("old", 100, help_text="")
        self.build("new", 100)
        status, said, found = self.compare()
        self.assertEqual(status, 0, said)
        self.assertEqual(len(found["rows"]), 2)

    def test_wide_intervals_do_not_fail_a_cell(self):
        noisy = figures.cell_summary([0.5, 1.0, 1.5, 1.0, 0.9])
        self.assertFalse(builds.below(noisy, builds.CELL_FLOOR))
        self.assertTrue(builds.below(figures.cell_summary([0.9, 0.95, 0.9]), builds.CELL_FLOOR))


unittest.main(argv=sys.argv[:1])
