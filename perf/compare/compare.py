#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libring's allreduce beside MPI's and beside what the machine allows.

Every contender measures the same thing (float sum in place, buffers rewritten before each
call, the slowest rank of each call, the median over calls), with each rank tied to a core
where there are enough. They run one after the other for each size, round after round, and
ratios are taken within a round: the machine's speed changes from minute to minute, so only
figures from the same moment compare. What is not installed is reported as absent. Needs
nothing but Python's standard library.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def parse_size(text):
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if unit and unit not in UNITS:
        raise argparse.ArgumentTypeError(f"{text}: not a size like 8, 64K, 1M")
    try:
        return int(float(number) * UNITS.get(unit, 1))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: not a size like 8, 64K, 1M") from None


def size_name(size):
    for unit in ("G", "M", "K"):
        if size >= UNITS[unit] and size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]}{unit}"
    return str(size)


def calls(size):
    """Timed calls: many where a call is short, and never so many that a round drags."""
    return max(10, min(200, 2**28 // max(size, 1)))


def binding(ranks):
    """Word of all three launchers: a rank stays on its core, unless ranks share cores."""
    return "core" if ranks <= len(os.sched_getaffinity(0)) else "none"


# ---- Contenders: each is absent for a reason, or runs one measurement ------------------


class Absent(Exception):
    """Why a contender cannot take part."""


class Failed(Exception):
    """Why a measurement gave no figure."""


def run(command, environment=None):
    # The tail of what a program says is what explains its failure.
    try:
        done = subprocess.run(command, env={**os.environ, **(environment or {})},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]}: no end after 600 s") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Failed(f"{' '.join(map(str, command))}: status {done.returncode}: "
                     f"{said[-1] if said else 'no message'}")
    return done.stdout


def json_lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


class Ring:
    def __init__(self, name, bin_dir, buffer="shared", transport=None):
        self.name, self.buffer, self.transport = name, buffer, transport
        self.ringrun, self.ringperf = bin_dir / "ringrun", bin_dir / "ringperf"

    def prepare(self, work):
        self.json = work / f"{self.name}.jsonl"
        for program in (self.ringrun, self.ringperf):
            if not program.exists():
                raise Absent(f"{program} is not built")

    def measure(self, ranks, size):
        environment = {"RING_TRANSPORT": self.transport} if self.transport else {}
        run([self.ringrun, "-n", str(ranks), f"--bind-to={binding(ranks)}", self.ringperf,
             "all_reduce", "-b", str(size), "-e", str(size), "-n", str(calls(size)), "-w", "5",
             "-c", "1", "--buffer", self.buffer, "--json", self.json], environment)
        line = next(line for line in json_lines(self.json) if line["in_place"])
        return line["time_us"], line["wrong"]


class Limit:
    """Two threads; says nothing about more ranks."""

    name = "limit"

    def __init__(self, bin_dir):
        self.program = bin_dir / "ringlimit"

    def prepare(self, work):
        self.json = work / "limit.jsonl"
        if not self.program.exists():
            raise Absent(f"{self.program} is not built")

    def measure(self, ranks, size):
        if ranks != 2:
            return None, 0
        run([self.program, "all_reduce", "-b", str(size), "-e", str(size), "-n",
             str(calls(size)), "--json", self.json])
        return json_lines(self.json)[0]["time_us"], 0


class Mpi:
    def __init__(self, name, compilers, launchers, bind_option, options=(), transport=()):
        self.name, self.compilers, self.launchers = name, compilers, launchers
        self.bind_option, self.options, self.transport = bind_option, options, transport

    def prepare(self, work):
        compiler = next(filter(None, map(shutil.which, self.compilers)), None)
        self.launcher = next(filter(None, map(shutil.which, self.launchers)), None)
        if not compiler or not self.launcher:
            raise Absent(f"neither {' nor '.join(self.compilers)} with its launcher is installed")
        self.program = work / f"mpi_allreduce.{self.name}"
        try:
            run([compiler, "-O3", "-D_GNU_SOURCE", f"-I{HERE.parent}", "-o", self.program,
                 HERE / "mpi_allreduce.c"])
        except Failed as error:
            raise Absent(str(error)) from None

    def measure(self, ranks, size):
        said = run([self.launcher, *self.options, *self.transport, self.bind_option, binding(ranks),
                    "-n", str(ranks), self.program, str(size), str(calls(size)), "5"])
        line = json.loads(said.strip().splitlines()[-1])
        return line["time_us"], line["wrong"]


def contenders(bin_dir):
    ompi_options = ["--oversubscribe"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
    ompi = (["mpicc.openmpi"], ["mpirun.openmpi"], "--bind-to", ompi_options)
    return [
        Limit(bin_dir),
        Ring("ring", bin_dir),
        Ring("ring-plain", bin_dir, buffer="plain"),
        Ring("ring-tcp", bin_dir, transport="tcp"),
        Mpi("openmpi", *ompi),
        Mpi("openmpi-tcp", *ompi, transport=["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]),
        Mpi("mpich", ["mpicc.mpich"], ["mpiexec.mpich", "mpiexec.hydra"], "-bind-to"),
    ]


PEERS = {"ring": ["openmpi", "mpich"], "ring-plain": ["openmpi", "mpich"],
         "ring-tcp": ["openmpi-tcp"]}


# ---- The comparison -----------------------------------------------------------------------


def take_part(wanted, bin_dir, work):
    """The contenders that can run; why the others cannot."""
    present, absent = [], {}
    for contender in contenders(bin_dir):
        if contender.name not in wanted:
            continue
        try:
            contender.prepare(work)
            present.append(contender)
        except Absent as why:
            absent[contender.name] = str(why)
    return present, absent


def measure_round(present, ranks, size, problems):
    times = {}
    for contender in present:
        what = f"{contender.name}, {ranks} ranks, {size_name(size)}"
        try:
            time, wrong = contender.measure(ranks, size)
        except Failed as why:
            problems.append(f"{what}: {why}")
            continue
        if wrong:
            problems.append(f"{what}: {wrong} wrong values")
        if time is not None:
            times[contender.name] = time
    return times


def ratio_to(times, ours, others):
    """How many times as fast as the best of the others, in one round."""
    there = [times[name] for name in others if name in times]
    return min(there) / times[ours] if ours in times and there else None


def median(values):
    there = [value for value in values if value is not None]
    return statistics.median(there) if there else None


def summarize(ranks, size, rounds, names):
    row = {"ranks": ranks, "bytes": size, "rounds": rounds,
           "time_us": {name: median(times.get(name) for times in rounds) for name in names}}
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
                progress(f"{ranks} ranks, {size_name(size)}, "
                         f"round {number + 1} of {options.rounds}")
                rounds.append(measure_round(present, ranks, size, problems))
            rows.append(summarize(ranks, size, rounds, names))
    progress("")
    return rows


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


# ---- The report -----------------------------------------------------------------------------


def cell(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def print_table(rows, names):
    ours = [name for name in PEERS if name in names]
    head = ["ranks", "bytes", *(f"{name} us" for name in names),
            *(f"{name}/peer" for name in ours), *(f"{name}/limit" for name in ours)]
    lines = [head]
    for row in rows:
        lines.append([str(row["ranks"]), size_name(row["bytes"]),
                      *(cell(row["time_us"][name]) for name in names),
                      *(cell(row["vs_best_peer"][name]) for name in ours),
                      *(cell(row["vs_limit"][name]) for name in ours)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths)))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="8,1K,16K,64K,256K,1M,4M,16M,64M",
                        help="bytes, a comma list (default %(default)s)")
    parser.add_argument("--ranks", default="2", help="a comma list (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="default %(default)s")
    parser.add_argument("--contenders", default="limit,ring,ring-plain,openmpi,mpich",
                        help="of limit, ring, ring-plain, ring-tcp, openmpi, openmpi-tcp, mpich "
                             "(default %(default)s)")
    parser.add_argument("--bin", type=Path, default=HERE.parent.parent / "build" / "bin",
                        help="where the programs are (default: the checkout's build/bin)")
    parser.add_argument("--json", type=Path, help="write everything, every round, to this file")
    options = parser.parse_args()
    known = {contender.name for contender in contenders(options.bin)}
    options.contenders = options.contenders.split(",")
    unknown = [name for name in options.contenders if name not in known]
    if unknown:
        parser.error(f"unknown contender {unknown[0]}; known: {', '.join(sorted(known))}")
    try:
        options.sizes = [parse_size(text) for text in options.sizes.split(",")]
        options.ranks = [int(text) for text in options.ranks.split(",")]
    except (argparse.ArgumentTypeError, ValueError) as error:
        parser.error(str(error))
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def main():
    options = parse_arguments()
    problems = []
    with tempfile.TemporaryDirectory() as work:
        present, absent = take_part(options.contenders, options.bin, Path(work))
        for name, why in absent.items():
            print(f"absent: {name}: {why}")
        rows = compare(present, options, problems)
    names = [contender.name for contender in present]
    print(f"allreduce, float sum in place; median of {options.rounds} interleaved rounds; a/b: "
          "how many times as fast as b")
    print_table(rows, names)
    for problem in problems:
        print(f"problem: {problem}")
    if options.json:
        options.json.write_text(json.dumps({"machine": platform.machine(), "cores": os.cpu_count(),
                                            "absent": absent, "problems": problems,
                                            "rows": rows}, indent=1) + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
