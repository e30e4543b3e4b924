#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares small messages of builds of libring with Open MPI, MPICH and Intel MPI, in shared
memory.

small.c is compiled with each library. It times single calls that all ranks start together ("meet"),
and many calls that follow each other ("row"). The size of all_gather is that of one rank's block.
Buffers are allocated by malloc ("plain"), or by the library (ring_mem_alloc: "shared",
MPI_Alloc_mem: "alloc"). In a round every library runs once, in rotating order.

A cell is an operation, a mode and a size. Its "peer" is the MPI, with either kind of buffer, that
has the smallest median time. Ratios say how many times as fast a build is. They are taken within a
round; the result is their median over rounds, with a bootstrap interval of 95 %. The first build
runs twice in each round, the second time as NAME-again. Its ratios to itself show the noise.

    small.py --libring old=/tmp/old --libring new=build --json small.json

The exit status is 1 if a value was wrong, a rank was not bound, or a measurement failed.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

import figures
import programs

HERE = programs.HERE
OPS = ["all_reduce", "broadcast", "reduce", "all_gather", "ping_pong", "barrier"]
MODES = ["meet", "row"]


class Contender:
    """One library with one kind of buffer."""

    def __init__(self, library, name, buffer, environment):
        self.library, self.name, self.buffer = library, name, buffer
        self.environment, self.version = environment, ""

    def measure(self, options):
        with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="small-") as board:
            output = programs.run(
                self.library.start(options.ranks, self.library.program, board.name, self.buffer,
                                   ",".join(options.ops), ",".join(map(str, options.sizes)),
                                   options.samples), self.environment)
        head, *cells = programs.json_lines(output)
        self.version = head["library"]
        return head, cells


def contenders_of(library, shared, environment):
    return [Contender(library, f"{library.name}-{kind}", buffer, environment)
            for kind, buffer in ((shared, "own"), ("plain", "plain"))]


def libraries(options):
    """@return lists of (library, name of its own buffers, environment), of builds and of MPIs."""
    builds = [programs.Build(name, folder) for name, folder in options.libring]
    again = programs.Build(f"{builds[0].name}-again", builds[0].folder)
    mpis = [programs.open_mpi(), programs.mpich(), programs.intel_mpi(options)]
    return ([(build, "shared", {"RING_TRANSPORT": "shm"}) for build in [*builds, again]],
            [(mpi, "alloc", mpi.environment) for mpi in mpis if mpi.name in options.peers])


def take_part(wanted, source, work, problems):
    """Compiles the program with each library. @return the contenders, and for each library that is
    not installed the reason."""
    present, absent = [], {}
    for library, own, environment in wanted:
        library.program = Path(work) / f"small.{library.name}"
        try:
            library.compile(library.program, HERE / "small.c", HERE / source)
            present += contenders_of(library, own, environment)
        except programs.Absent as why:
            absent[library.name] = str(why)
        except programs.Failed as why:
            problems.append(f"{library.name}: {why}")
    return present, absent


# ---- The rounds ---------------------------------------------------------------------------


def note(cells, head, name, lines, options, problems):
    """Stores one contender's results of one round in the latest round of each cell."""
    if not head["bound"] and programs.binding(options.ranks) == "core":
        problems.append(f"{name}: ranks share cores although there are enough cores")
    for line in lines:
        if line["wrong"]:
            problems.append(f"{name}: {line['op']} {line['mode']} {line['bytes']}: "
                            f"{line['wrong']} wrong values")
        cells[line["op"], line["mode"], line["bytes"]][-1][name] = line["time_us"]


def all_cells(options):
    return [(op, mode, size) for op in options.ops for mode in MODES
            for size in (options.sizes if op != "barrier" else [0])]


def measure(contenders, options, problems):
    """@return for each cell, a list with a dictionary of times by contender for each round."""
    cells = {key: [] for key in all_cells(options)}
    for number in range(options.rounds):
        for rounds in cells.values():
            rounds.append({})
        for contender in figures.rotated(contenders, number):
            programs.progress(f"round {number + 1} of {options.rounds}: {contender.name}")
            try:
                head, lines = contender.measure(options)
            except programs.Failed as why:
                problems.append(f"{contender.name}: {why}")
                continue
            note(cells, head, contender.name, lines, options, problems)
    programs.progress("")
    return cells


# ---- Results ------------------------------------------------------------------------


def pairs_of(options, ours):
    """@return the pairs to compare: each build with the first build, for each kind of buffer."""
    first = options.libring[0][0]
    return [(name, f"{first}-{name.rsplit('-', 1)[1]}") for name in ours
            if name.rsplit("-", 1)[0] != first]


def summarize_cell(key, rounds, ours, peers, pairs):
    op, mode, size = key
    peer = figures.fastest(rounds, peers)
    against_peer = {name: figures.speeds(rounds, name, peer) for name in ours}
    against_first = {name: figures.speeds(rounds, name, first) for name, first in pairs}
    return {"op": op, "mode": mode, "bytes": size, "peer": peer, "rounds": rounds,
            "time_us": {name: figures.median(times.get(name) for times in rounds)
                        for name in [*ours, *peers]},
            "vs_peer": {name: figures.cell_summary(ratios)
                        for name, ratios in against_peer.items()},
            "vs_first": {name: figures.cell_summary(ratios)
                         for name, ratios in against_first.items()}}


def ratios_of(cell, kind, name, pairs):
    other = cell["peer"] if kind == "vs_peer" else dict(pairs)[name]
    return figures.speeds(cell["rounds"], name, other)


def summarize_rows(cells, pairs, ours):
    """@return geometric means over the sizes of each operation and mode, and over all operations of
    each mode."""
    rows = []
    for op in [*dict.fromkeys(cell["op"] for cell in cells), "all"]:
        for mode in MODES:
            of_row = [cell for cell in cells if cell["mode"] == mode and op in (cell["op"], "all")]
            rows.append({"op": op, "mode": mode, **{
                kind: {name: figures.row_summary([ratios_of(cell, kind, name, pairs)
                                                  for cell in of_row]) for name in names}
                for kind, names in (("vs_peer", ours), ("vs_first", [name for name, _ in pairs]))}})
    return rows


def place(cell):
    return [cell["op"], cell["mode"], figures.size_name(cell["bytes"]) if "bytes" in cell else ""]


def print_times(cells, names):
    print("\nmedian times, us")
    print(figures.table([["op", "mode", "bytes", *names, "best peer"]] + [
        [*place(cell), *(figures.number(cell["time_us"][name]) for name in names),
         cell["peer"] or "-"] for cell in cells]))


def print_ratios(title, cells, kind, names):
    if names:
        print(f"\n{title}")
        print(figures.table([["op", "mode", "bytes", *names]] + [
            [*place(cell), *(figures.interval_text(cell[kind][name]) for name in names)]
            for cell in cells]))


def report(cells, rows, ours, peers, pairs, options):
    against = [name for name, _ in pairs]
    first = options.libring[0][0]
    print_times(cells, [*ours, *peers])
    for title, lines in (("", cells), ("geometric means over sizes: ", rows)):
        if peers:
            print_ratios(f"{title}how many times as fast as the best peer [95 %]", lines,
                         "vs_peer", ours)
        print_ratios(f"{title}how many times as fast as {first}, same buffers [95 %]", lines,
                     "vs_first", against)


# ---- The command line ---------------------------------------------------------------------


def named_folder(text):
    name, equals, folder = text.partition("=")
    if not (name and equals and folder) or "-" in name:
        raise argparse.ArgumentTypeError(f"{text}: not NAME=FOLDER, with a name without '-'")
    return name, Path(folder)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libring", action="append", type=named_folder, metavar="NAME=FOLDER",
                        help="a build folder or an installed prefix; may be repeated, and the "
                             "others are compared with the first (default: ring=build)")
    parser.add_argument("--peers", type=figures.list_of(str), default="openmpi,mpich,impi",
                        help="a comma list, or none (default %(default)s)")
    parser.add_argument("--ops", type=figures.list_of(str), default=",".join(OPS),
                        help="default %(default)s")
    parser.add_argument("--sizes", type=figures.list_of(figures.parse_size),
                        help="bytes, a comma list (default: 8 to 16K, times 2)")
    parser.add_argument("--ranks", type=int, default=2, help="default %(default)s")
    parser.add_argument("--rounds", type=int, default=15, help="default %(default)s")
    parser.add_argument("--samples", type=int, default=500,
                        help="samples of a cell in the mode meet (default %(default)s)")
    parser.add_argument("--quick", action="store_true",
                        help="few rounds, sizes and samples: takes ten seconds, as a test")
    parser.add_argument("--json", type=Path, help="write all results of every round to this file")
    programs.add_intel_options(parser)
    options = parser.parse_args()
    unknown = [op for op in options.ops if op not in OPS]
    if unknown:
        parser.error(f"unknown operation {unknown[0]}; known: {', '.join(OPS)}")
    if options.quick:
        options.rounds, options.samples = min(3, options.rounds), 100
    options.sizes = options.sizes or figures.sizes_between(8, 2**14, 16 if options.quick else 2)
    options.libring = options.libring or [("ring", HERE.parent.parent / "build")]
    if min(options.rounds, options.samples, options.ranks) < 1 or options.samples > 4096:
        parser.error("--rounds, --samples (at most 4096) and --ranks must be at least 1")
    return options


def measure_all(options, problems):
    """@return the versions of the builds and of the MPIs, why other MPIs are absent, and the times
    by cell."""
    builds, mpis = libraries(options)
    with tempfile.TemporaryDirectory() as work:
        ours, missing = take_part(builds, "small_ring.c", work, problems)
        peers, absent = take_part(mpis, "small_mpi.c", work, problems)
        problems += [f"{name}: {why}" for name, why in missing.items()]
        cells = measure([*ours, *peers], options, problems)
    return ({contender.name: contender.version for contender in ours},
            {contender.name: contender.version for contender in peers}, absent, cells)


def main():
    options, problems = parse_arguments(), []
    ours, peers, absent, measured = measure_all(options, problems)
    pairs = pairs_of(options, ours)
    cells = [summarize_cell(key, rounds, ours, peers, pairs) for key, rounds in measured.items()]
    rows = summarize_rows(cells, pairs, ours)
    print(f"{options.ranks} ranks, {options.rounds} rounds of {options.samples} samples per cell")
    for name, version in {**ours, **peers}.items():
        print(f"{name}: {version}")
    for name, why in absent.items():
        print(f"absent: {name}: {why}")
    report(cells, rows, ours, peers, pairs, options)
    for problem in problems:
        print(f"problem: {problem}")
    if options.json:
        options.json.write_text(json.dumps(
            {"machine": platform.machine(), "cores": os.cpu_count(), "ranks": options.ranks,
             "versions": {**ours, **peers}, "absent": absent, "problems": problems,
             "cells": cells, "geometric_means": rows}, indent=1) + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
