#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares an old and a new build of libring for large sizes, with the collectives of ringperf.

A row is a collective, a transport, a number of ranks and a kind of buffers. Each build measures it
over all sizes with its own ringrun and ringperf. In each round the old build, the new build, and
the old build again take turns, in rotating order. A cell is a size of a row, out of place or in
place. Its ratios are bandwidths divided by that of the old build in the same round; the result is
their median over rounds, with a bootstrap interval of 95 %. The ratios of the old build to itself
show the noise. A barrier has no bandwidth, so its rate is measured.

    builds.py --old /tmp/old --new build --rounds 15 --json builds.json

The exit status is 1 if the interval of a cell is entirely below 0.97, if the geometric mean of a
row is below 0.99, or if a measurement failed; the last lines state the reasons.
"""

import argparse
import itertools
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import figures
import programs

CELL_FLOOR, ROW_FLOOR = 0.97, 0.99
LARGE = 2**20  # for sizes from this one on, fewer calls are timed
COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "sendrecv",
               "barrier"]


class Contender:
    """One build of libring, and the collectives and options that its ringperf supports."""

    def __init__(self, name, folder):
        self.name, self.build = name, programs.Build(name, folder)
        self.build.need(self.build.ringrun, self.build.ringperf)
        self.help = programs.run([self.build.ringperf, "--help"])

    def can(self, row):
        collective, _, _, buffer = row
        return collective in self.help.split() and (buffer == "shared" or "--buffer" in self.help)

    def command(self, row, sizes, iterations, json_file):
        collective, _, ranks, buffer = row
        kind = ["--buffer", buffer] if "--buffer" in self.help else []
        return self.build.start(ranks, self.build.ringperf, collective, "-b", sizes[0], "-e",
                                sizes[-1], "-f", 4, "-n", iterations, "-w", 1, "-c", 1, *kind,
                                "--json", json_file)

    def measure(self, row, groups):
        """@return bytes per microsecond by (size, in place); for a barrier, calls per
        microsecond."""
        rates = {}
        for sizes, iterations in groups:
            with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
                programs.run(self.command(row, sizes, iterations, file.name),
                             {"RING_TRANSPORT": row[1]})
                lines = programs.json_lines(Path(file.name).read_text())
            for line in lines:
                if line["wrong"]:
                    raise programs.Failed(f"{line['wrong']} wrong values at {line['bytes']} bytes")
                rates[line["bytes"], line["in_place"]] = (line["bytes"] or 1) / line["time_us"]
        return rates


def groups_of(row, options):
    """@return the sizes of each run of ringperf, with the number of timed calls."""
    if row[0] == "barrier":
        return [([0], options.iterations)]
    small = [size for size in options.sizes if size < LARGE]
    large = [size for size in options.sizes if size >= LARGE]
    few = max(5, options.iterations // 5)
    return [group for group in ((small, options.iterations), (large, few)) if group[0]]


def row_name(row):
    collective, transport, ranks, buffer = row
    return f"{collective} {transport} {ranks} ranks {buffer}"


# ---- The rounds ---------------------------------------------------------------------------


def measure_row(contenders, row, number, options, problems):
    """Measures a row in one round. @return rates by contender, without those that failed."""
    found = {}
    for contender in figures.rotated(contenders, number):
        try:
            found[contender.name] = contender.measure(row, groups_of(row, options))
        except (programs.Failed, KeyError, ValueError) as why:
            problems.append(f"{row_name(row)}: {contender.name}: {why!r}")
    return found


def left_text(seconds, done, total):
    return f", {seconds / done * (total - done) / 60:.0f} min left" if done else ""


def measure(contenders, rows, options, problems):
    """@return for each row, the rates by contender of each round. All rows are measured in a round
    before the next round begins. So the rounds of a row are far apart in time, and a period in
    which the machine is slow does not affect only one row."""
    rounds, begun = {row: [] for row in rows}, time.monotonic()
    turns = list(itertools.product(range(options.rounds), rows))
    for done, (number, row) in enumerate(turns):
        programs.progress(f"round {number + 1} of {options.rounds}: {row_name(row)}"
                          f"{left_text(time.monotonic() - begun, done, len(turns))}")
        rounds[row].append(measure_row(contenders, row, number, options, problems))
    programs.progress("")
    return rounds


# ---- Results ------------------------------------------------------------------------


def ratios(rounds, ours, key):
    """@return the ratio to the old build's bandwidth in each round; None if a rate is missing."""
    def of(found, name):
        return found.get(name, {}).get(key)
    return [of(found, ours) / of(found, "old") if of(found, ours) and of(found, "old") else None
            for found in rounds]


def summarize(row, rounds):
    keys = sorted({key for found in rounds for rates in found.values() for key in rates})
    columns = {name: [ratios(rounds, name, key) for key in keys] for name in ("new", "again")}
    cells = [{"bytes": size, "in_place": in_place,
              **{name: figures.cell_summary(columns[name][i]) for name in columns}}
             for i, (size, in_place) in enumerate(keys)]
    return {"row": row_name(row), "cells": cells,
            **{name: figures.row_summary(columns[name]) for name in columns}}


def below(found, floor):
    """@return True if the whole interval is below the floor."""
    return found["interval"] is not None and found["interval"][1] < floor


def verdicts(summaries, name):
    """@return the reasons why `name` counts as slower than the old build."""
    reasons = []
    for summary in summaries:
        for cell in summary["cells"]:
            if below(cell[name], CELL_FLOOR):
                reasons.append(f"{summary['row']}: {cell_name(cell)}: "
                               f"{figures.interval_text(cell[name])} is below {CELL_FLOOR}")
        if summary[name]["ratio"] is not None and summary[name]["ratio"] < ROW_FLOOR:
            reasons.append(f"{summary['row']}: geometric mean "
                           f"{figures.interval_text(summary[name])} is below {ROW_FLOOR}")
    return reasons


def cell_name(cell):
    return f"{figures.size_name(cell['bytes'])} {'in place' if cell['in_place'] else 'out'}"


def print_summaries(summaries):
    lines = [["row", "cell", "new/old [95 %]", "old/old [95 %]"]]
    for summary in summaries:
        named = [*((cell_name(cell), cell) for cell in summary["cells"]), ("mean", summary)]
        lines += [[summary["row"], name, figures.interval_text(found["new"]),
                   figures.interval_text(found["again"])] for name, found in named]
    print(figures.table(lines))


# ---- The command line ---------------------------------------------------------------------


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("old", "new"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FOLDER",
                            help="a build folder or an installed prefix")
    for name, default in (("collectives", ",".join(COLLECTIVES)), ("transports", "shm,tcp"),
                          ("buffers", "shared,plain")):
        parser.add_argument(f"--{name}", type=figures.list_of(str), default=default,
                            help="a comma list (default %(default)s)")
    parser.add_argument("--ranks", type=figures.list_of(int), default="2,4",
                        help="a comma list (default %(default)s)")
    parser.add_argument("--min", type=figures.parse_size, default="64K",
                        help="smallest size (default %(default)s); sizes grow by a factor of 4")
    parser.add_argument("--max", type=figures.parse_size, default="64M",
                        help="largest size (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="default %(default)s")
    parser.add_argument("--iterations", type=int, default=50,
                        help="timed calls (default %(default)s); from 1 MiB on, a fifth of them")
    parser.add_argument("--quick", action="store_true",
                        help="a test that takes a minute: 3 rounds to 1 MiB, 2 ranks, shm")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.max, options.ranks, options.transports = 3, 2**20, [2], ["shm"]
    if min(options.rounds, options.iterations, options.min, *options.ranks) < 1:
        parser.error("--rounds, --iterations, --min and --ranks must be at least 1")
    options.sizes = [options.min * 4**i for i in range(32) if options.min * 4**i <= options.max]
    if not options.sizes:
        parser.error("--min is above --max")
    return options


def open_contenders(options):
    try:
        return [Contender(name, folder) for name, folder in
                (("old", options.old), ("new", options.new), ("again", options.old))]
    except (programs.Absent, programs.Failed) as why:
        sys.exit(f"builds.py: {why}")


def rows_of(contenders, options):
    """@return the rows that every build supports. A barrier has no buffers, so it has one row for
    all kinds of buffers."""
    wanted = itertools.product(options.collectives, options.transports, options.ranks,
                               options.buffers)
    return [row for row in wanted if all(contender.can(row) for contender in contenders)
            and (row[0] != "barrier" or row[3] == options.buffers[0])]


def main():
    options, problems = parse_arguments(), []
    contenders = open_contenders(options)
    rows = rows_of(contenders, options)
    summaries = [summarize(row, rounds)
                 for row, rounds in measure(contenders, rows, options, problems).items()]
    print_summaries(summaries)
    slower = verdicts(summaries, "new")
    noise = verdicts(summaries, "again")
    print(f"\nby the same rules, the old build is slower than itself {len(noise)} times")
    for line in [*(f"slower: {line}" for line in slower), *(f"problem: {p}" for p in problems)]:
        print(line)
    if options.json:
        options.json.write_text(json.dumps(
            {"machine": platform.machine(), "cores": os.cpu_count(), "rounds": options.rounds,
             "rows": summaries, "slower": slower, "noise": noise, "problems": problems},
            indent=1) + "\n")
    return 1 if slower or problems else 0


if __name__ == "__main__":
    sys.exit(main())
