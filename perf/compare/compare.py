#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares libring's all-reduce with those of MPI and Gloo, and with the limits of the machine.

All contenders use the same method: a float sum, inputs rewritten before each call, the time of the
slowest rank of each call, the median over calls, and each rank bound to a core if there are enough.
In each round, all contenders run one after the other for each size, and ratios are taken within a
round, because the speed of a machine changes from minute to minute. Libraries that are not
installed are reported as absent. "ringperf compare" runs this program, which needs only Python's
standard library.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

import programs
from compare_page import page
from figures import counted, list_of, median, number, parse_size, rotated, size_name, table

HERE = programs.HERE


def calls(size):
    """@return the number of timed calls: the longer a call, the fewer, so that rounds stay
    short."""
    return max(10, min(200, 2**28 // max(size, 1)))


# ---- Contenders. measure() gives the time in us (None: not measured) and the wrong values. ----


class Ring:
    def __init__(self, name, build, in_place, buffer="shared", transport=None):
        self.name, self.build, self.in_place = name, build, in_place
        self.buffer, self.transport = buffer, transport
        self.predicted_us = None

    def prepare(self, work):
        self.json = work / f"{self.name}.jsonl"
        self.build.need(self.build.ringrun, self.build.ringperf)

    def measure(self, ranks, size):
        environment = {"RING_TRANSPORT": self.transport} if self.transport else {}
        programs.run(self.build.start(
            ranks, self.build.ringperf, "all_reduce", "-b", size, "-e", size, "-n", calls(size),
            "-w", "5", "-c", "1", "--buffer", self.buffer, "--json", self.json), environment)
        lines = programs.json_lines(self.json.read_text())
        line = next(line for line in lines if bool(line["in_place"]) == self.in_place)
        self.predicted_us = line["predicted_us"]
        return line["time_us"], line["wrong"]


class Limit:
    """ringlimit, with two threads; it has no limit for other numbers of ranks."""

    name = "limit"

    def __init__(self, build):
        self.build = build

    def prepare(self, work):
        self.json = work / "limit.jsonl"
        self.build.need(self.build.ringlimit)

    def measure(self, ranks, size):
        if ranks != 2:
            return None, 0
        programs.run([self.build.ringlimit, "all_reduce", "-b", size, "-e", size, "-n",
                      calls(size), "--json", self.json])
        return programs.json_lines(self.json.read_text())[0]["time_us"], 0


class Mpi:
    def __init__(self, library, in_place):
        self.name, self.library = library.name, library
        self.out = [] if in_place else ["out"]

    def prepare(self, work):
        self.program = work / f"mpi_allreduce.{self.name}"
        self.library.compile(self.program, HERE / "mpi_allreduce.c")

    def measure(self, ranks, size):
        output = programs.run(self.library.start(ranks, self.program, size, calls(size), 5,
                                               *self.out),
                            self.library.environment)
        line = programs.json_lines(output)[-1]
        return line["time_us"], line["wrong"]


class Gloo:
    """Gloo over TCP on the loopback interface, its only transport between processes of a host."""

    name = "gloo"

    def __init__(self, in_place):
        self.in_place = in_place

    def prepare(self, work):
        if not self.in_place:
            raise programs.Absent("is measured only in place")
        self.program = work / "gloo_allreduce"
        programs.Gloo().compile(self.program, HERE / "gloo_allreduce.cc")

    def measure(self, ranks, size):
        line = programs.json_lines(programs.run([self.program, ranks, size, calls(size), 5]))[-1]
        return line["time_us"], line["wrong"]


def contenders(options):
    build, in_place = programs.Build("ring", options.build), not options.out_of_place
    over_tcp = programs.open_mpi("openmpi-tcp", ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"])
    return [
        Limit(build),
        Ring("ring", build, in_place),
        Ring("ring-plain", build, in_place, buffer="plain"),
        Ring("ring-tcp", build, in_place, transport="tcp"),
        Mpi(programs.open_mpi(), in_place),
        Mpi(over_tcp, in_place),
        Mpi(programs.mpich(), in_place),
        Mpi(programs.intel_mpi(options), in_place),
        Gloo(in_place),
    ]


LOCAL = ["openmpi", "mpich", "impi", "gloo"]
PEERS = {"ring": LOCAL, "ring-plain": LOCAL, "ring-tcp": ["openmpi-tcp", "gloo"]}


# ---- The comparison -----------------------------------------------------------------------


def take_part(known, wanted, work, problems):
    """@return the contenders that can run, and for each of the others the reason why it cannot."""
    present, absent = [], {}
    for contender in known:
        if contender.name not in wanted:
            continue
        try:
            contender.prepare(work)
            present.append(contender)
        except programs.Absent as why:
            absent[contender.name] = str(why)
        except programs.Failed as why:
            problems.append(f"{contender.name}: {why}")
    return present, absent


def measure_round(present, ranks, size, problems):
    times = {}
    for contender in present:
        name = f"{contender.name}, {counted(ranks, 'rank')}, {size_name(size)}"
        try:
            time, wrong = contender.measure(ranks, size)
        except programs.Failed as why:
            problems.append(f"{name}: {why}")
            continue
        if wrong:
            problems.append(f"{name}: {wrong} wrong values")
        if time is not None:
            times[contender.name] = time
        if contender.name == "ring":
            times["predicted"] = contender.predicted_us
    return times


def ratio_to(times, ours, others):
    """@return how many times as fast `ours` was as the best of the others, in one round."""
    known = [times[name] for name in others if name in times]
    return min(known) / times[ours] if ours in times and known else None


def summarize(ranks, size, rounds, names):
    row = {"ranks": ranks, "bytes": size, "rounds": rounds,
           "time_us": {name: median(times.get(name) for times in rounds)
                       for name in [*names, "predicted"]}}
    row["vs_best_peer"] = {name: median(ratio_to(times, name, peers) for times in rounds)
                           for name, peers in PEERS.items() if name in names}
    row["vs_limit"] = {name: median(ratio_to(times, name, ["limit"]) for times in rounds)
                       for name in PEERS if name in names}
    return row


def compare(present, options, problems):
    names = [contender.name for contender in present]
    rows = []
    for ranks in options.ranks:
        for size in options.sizes:
            rounds = []
            for number in range(options.rounds):
                programs.progress(f"{counted(ranks, 'rank')}, {size_name(size)}, "
                                  f"round {number + 1} of {options.rounds}")
                rounds.append(measure_round(rotated(present, number), ranks, size, problems))
            rows.append(summarize(ranks, size, rounds, names))
    programs.progress("")
    return rows


# ---- The report -----------------------------------------------------------------------------


def print_table(rows, names):
    ours = [name for name in PEERS if name in names]
    head = ["ranks", "bytes", *(f"{name} us" for name in names),
            *(f"{name}/peer" for name in ours), *(f"{name}/limit" for name in ours)]
    lines = [head]
    for row in rows:
        lines.append([str(row["ranks"]), size_name(row["bytes"]),
                      *(number(row["time_us"][name]) for name in names),
                      *(number(row["vs_best_peer"][name]) for name in ours),
                      *(number(row["vs_limit"][name]) for name in ours)])
    print(table(lines))


def place(options):
    return "out of place" if options.out_of_place else "in place"


def make_page(rows, names, absent, options):
    facts = [f"float sum {place(options)}, medians of "
             f"{counted(options.rounds, 'interleaved round')}; the "
             "slowest rank's time of each call counts",
             f"{platform.machine()}, {counted(os.cpu_count(), 'core')}",
             "predicted: by libring's cost model; limit: measured by ringlimit with two threads",
             *(f"absent: {name}: {why}" for name, why in absent.items())]
    return page("All-reduce: libring and others", facts, rows, [*names, "predicted"],
                [name for name in PEERS if name in names])


def parse_arguments():
    parser = argparse.ArgumentParser(prog="ringperf compare", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=list_of(parse_size),
                        default="8,1K,16K,64K,256K,1M,4M,16M,64M",
                        help="bytes, a comma list (default %(default)s)")
    parser.add_argument("--ranks", type=list_of(int), default="2",
                        help="a comma list (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="default %(default)s")
    parser.add_argument("--out-of-place", action="store_true",
                        help="write sums to a separate buffer (but measure the limit in place)")
    parser.add_argument("--contenders", type=list_of(str),
                        default="limit,ring,ring-plain,openmpi,mpich,impi,gloo",
                        help="a comma list of limit, ring, ring-plain, ring-tcp, openmpi, "
                             "openmpi-tcp, mpich, impi, gloo (default %(default)s)")
    parser.add_argument("--build", type=Path, default=HERE.parent.parent / "build",
                        help="a build folder or an installed prefix (default: the checkout's "
                             "build)")
    parser.add_argument("--json", type=Path, help="write all results of every round to this file")
    parser.add_argument("--html", type=Path, metavar="FILE",
                        help="write plots and a table to this file as one page")
    programs.add_intel_options(parser)
    options = parser.parse_args()
    known = {contender.name for contender in contenders(options)}
    unknown = [name for name in options.contenders if name not in known]
    if unknown:
        parser.error(f"unknown contender {unknown[0]}; known: {', '.join(sorted(known))}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    if min(options.ranks) < 1:
        parser.error("--ranks must be at least 1")
    return options


def main():
    options = parse_arguments()
    problems = []
    with tempfile.TemporaryDirectory() as work:
        present, absent = take_part(contenders(options), options.contenders, Path(work),
                                    problems)
        for name, why in absent.items():
            print(f"absent: {name}: {why}")
        rows = compare(present, options, problems)
    names = [contender.name for contender in present]
    print(f"allreduce, float sum {place(options)}; median of "
          f"{counted(options.rounds, 'interleaved round')}; a/b: how many times as fast a is as b")
    print_table(rows, names)
    for problem in problems:
        print(f"problem: {problem}")
    if options.json:
        options.json.write_text(json.dumps({"machine": platform.machine(), "cores": os.cpu_count(),
                                            "absent": absent, "problems": problems,
                                            "rows": rows}, indent=1) + "\n")
    if options.html:
        options.html.write_text(make_page(rows, names, absent, options))
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except programs.Failed as why:  # --install-impi has failed
        sys.exit(f"ringperf compare: {why}")
