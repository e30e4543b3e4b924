#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An old build of libring against a new one, large sizes: every collective of ringperf.

Each build's own ringrun and ringperf measure one row (collective, transport, ranks, buffers) over
all sizes, old, new and the old one again, in rotating order, round after round. A cell is a
size, out of place and in place. Ratios are of bandwidth, new by old and old-again by old, taken
within a round; they stand with the bootstrap's 95 % interval over rounds. What old against itself
shows is noise. A barrier has no bandwidth: it is measured as its rate.

    builds.py --old /tmp/old --new build --rounds 15 --json builds.json

Exit status 1 if a cell's interval lies wholly below 0.97, if a row's geometric mean is below 0.99,
or if a measurement failed; the last lines say what.
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
LARGE = 2**20  # from here on fewer calls are timed
COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "sendrecv",
               "barrier"]


class Contender:
    """One build, with what its own ringperf can do."""

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
        """Bytes a microsecond by (size, in place); a barrier's calls a microsecond."""
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
    """Sizes of one ringperf each, with the calls that are timed."""
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
    """One round: rates by contender, {} for one that failed."""
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
    """By row, each round's rates by contender. Rounds are outermost: the rounds of a row are
    far apart in time, so that a slow quarter of an hour is not one row's alone."""
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
    """Of bandwidth to the old build's, one a round; None where one is missing."""
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
    """Whether the whole interval is below."""
    return found["interval"] is not None and found["interval"][1] < floor


def verdicts(summaries, name):
    """@return the reasons why `name` is slower than the old build."""
    said = []
    for summary in summaries:
        for cell in summary["cells"]:
            if below(cell[name], CELL_FLOOR):
                said.append(f"{summary['row']}: {cell_name(cell)}: "
                            f"{figures.interval_text(cell[name])} is below {CELL_FLOOR}")
        if summary[name]["ratio"] is not None and summary[name]["ratio"] < ROW_FLOOR:
            said.append(f"{summary['row']}: geometric mean "
                        f"{figures.interval_text(summary[name])} is below {ROW_FLOOR}")
    return said


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
                        help="least bytes (default %(default)s); from size to size times 4")
    parser.add_argument("--max", type=figures.parse_size, default="64M",
                        help="most bytes (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="default %(default)s")
    parser.add_argument("--iterations", type=int, default=50,
                        help="timed calls; a fifth from 1 MiB on (default %(default)s)")
    parser.add_argument("--quick", action="store_true",
                        help="3 rounds to 1 MiB, 2 ranks, shm: a minute, to see that it works")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.max, options.ranks, options.transports = 3, 2**20, [2], ["shm"]
    if min(options.rounds, options.iterations, options.min, *options.ranks) < 1:
        parser.error("--rounds, --iterations, --min and --ranks are at least 1")
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
    """@return the cells that every build supports. A barrier has no buffers: one kind is enough."""
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
    print(f"\nby the same rules the old build is slower than itself {len(noise)} times")
    for said in [*(f"slower: {line}" for line in slower), *(f"problem: {p}" for p in problems)]:
        print(said)
    if options.json:
        options.json.write_text(json.dumps(
            {"machine": platform.machine(), "cores": os.cpu_count(), "rounds": options.rounds,
             "rows": summaries, "slower": slower, "noise": noise, "problems": problems},
            indent=1) + "\n")
    return 1 if slower or problems else 0


if __name__ == "__main__":
    sys.exit(main())
