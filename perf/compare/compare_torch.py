#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares torch.distributed over libring and over Gloo, on the CPU: collectives by size, the cost
of a small call, steps of DDP and FSDP2, and how much of its communication DDP hides.

    compare_torch.py [PART...] [--build BUILD] [--python PYTHON_WITH_TORCH] [--json FILE]
    compare_torch.py show FILE... [--html FILE] [--svg FOLDER]

PART is calls, call_cost, steps or overlap; by default all of them are measured. The processes of a
measurement have a process group for each contender. In each round the contenders take turns, and
ratios are taken within a round. Each rank is bound to a core if there are enough, and computes with
one thread.

The place "host" has all ranks on one host. The place "namespaces" has half of the ranks on each of
two hosts, which are network namespaces connected by a virtual wire; it needs root and iproute2.

Parts can be measured at different times, each with --json and its own file; "show" then makes one
report of all files.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import programs
import torch_page
from figures import list_of, parse_size, rotated
from torch_start import Host, Namespaces, run_ranks

OPS = ["all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single",
       "broadcast", "barrier"]
ENGINES, MODELS = ["ddp", "ddp view", "fsdp2"], ["mlp", "lenet5", "gpt"]
STEPS = {"mlp": 30, "lenet5": 30, "gpt": 2, "deep": 3}  # training steps in a turn
DELAYED = {"RING_FAULT": "delay=0.001", "RING_TRANSPORT": "tcp"}
QUICK = {"sizes": [4, 2**16], "rounds": 1, "ranks": [2], "calls": 2, "places": ["host"]}


def contender(name, backend, **more):
    return {"name": name, "backend": backend, **more}


def communicating(options, shared=False):
    found = [contender(name, name, memory="plain") for name in options.backends]
    if shared and "ring" in options.backends:
        found.append(contender("ring shared", "ring", memory="shared"))
    return found


# ---- The parts: cases() lists the cases of a part, and measure() gives the rows of one case ------


class Calls:
    name, program, places = "calls", "torch_calls.py", ["host", "namespaces"]

    def cases(self, options):
        return [{"op": op} for op in OPS]

    def measure(self, options, place, ranks, case):
        spec = {**case, "part": self.name, "sizes": options.sizes, "rounds": options.rounds,
                "calls": options.calls, "contenders": communicating(options, True)}
        return run_ranks(options, place, self.program, ranks, spec)


class CallCost:
    """Compares a small call with ringperf, and with a backend that does nothing, which has only
    PyTorch's own cost."""

    name, program, places = "call_cost", "torch_calls.py", ["host"]

    def cases(self, options):
        return [{}]

    def in_c(self, options, ranks):
        build, file = programs.Build("ring", options.build), Path(options.folder, "ringperf.json")
        build.need(build.ringrun, build.ringperf)
        programs.run(build.start(ranks, build.ringperf, "all_reduce", "-b", 4, "-e", 4, "-n", 500,
                                 "-w", 10, "-c", 0, "--hot", "--json", file))
        return next(line["time_us"] for line in programs.json_lines(file.read_text())
                    if line["in_place"])

    def measure(self, options, place, ranks, case):
        spec = {"part": self.name, "rounds": 1,
                "contenders": [*communicating(options, True), contender("silent", "fake")]}
        ways = {}
        for _ in range(options.rounds):
            c = self.in_c(options, ranks)
            for row in run_ranks(options, place, self.program, ranks, spec):
                ways.setdefault(row["way"], []).extend({**times, "C": c} for times in row["rounds"])
        return [{"way": way, "rounds": rounds} for way, rounds in ways.items()]


class Steps:
    name, program, places = "steps", "torch_steps.py", ["host", "namespaces"]

    def cases(self, options):
        return [{"engine": engine, "model": model} for engine in ENGINES for model in MODELS]

    def measure(self, options, place, ranks, case):
        spec = {**case, "rounds": options.rounds, "bucket_mb": 25,
                "steps": 1 if options.quick else STEPS[case["model"]],
                "contenders": [contender("silent", "fake"), *communicating(options)]}
        return run_ranks(options, place, self.program, ranks, spec)


class Overlap:
    """Measures 16 buckets of 1 MiB over tcp between two hosts, with each frame delayed by a
    millisecond, and compares them with calls that are made after the backward pass. RING_PROGRESS
    is the same for all groups of a process, so each setting has its own processes, which take
    turns."""

    name, program, places = "overlap", "torch_steps.py", ["namespaces"]

    def cases(self, options):
        return [{"engine": "ddp view", "model": "deep"}] if "ring" in options.backends else []

    def step_us(self, options, place, ranks, case, progress):
        spec = {**case, "rounds": 1, "bucket_mb": 1, "batch": options.batch,
                "steps": STEPS["deep"],
                "contenders": [contender("silent", "fake"), contender(progress, "ring"),
                               contender(f"{progress}, in turn", "ring", in_turn=True)]}
        settings = {**DELAYED, "RING_PROGRESS": progress}
        return run_ranks(options, place, self.program, ranks, spec, settings)[0]["rounds"][0]

    def measure(self, options, place, ranks, case):
        rounds = []
        for number in range(options.rounds):
            times = {}
            for progress in rotated(["auto", "none"], number):
                times.update(self.step_us(options, place, ranks, case, progress))
            rounds.append(times)
        return [{**case, "rounds": rounds}]


PARTS = {part.name: part for part in (Calls(), CallCost(), Steps(), Overlap())}


# ---- The comparison -------------------------------------------------------------------------


def places_of(options, stack):
    """@return the places that exist on this machine by name, and the reasons for the others."""
    found, absent = {}, {}
    for name, make in ("host", Host), ("namespaces", lambda: Namespaces(stack)):
        if name in options.places:
            try:
                found[name] = make()
            except programs.Failed as why:
                absent[name] = str(why)
    return found, absent


def measurements(options, places):
    """Yields (name, part, place, ranks, case) for all requested measurements."""
    for part in options.parts:
        for place in (places[name] for name in PARTS[part].places if name in places):
            for ranks in options.ranks if part != "overlap" else [2]:
                for case in PARTS[part].cases(options):
                    words = [part, place.name, str(ranks), *case.values()]
                    yield ".".join(words), PARTS[part], place, ranks, case


def measure_all(options, places, problems):
    rows = []
    for name, part, place, ranks, case in measurements(options, places):
        if not re.search(options.only, name):
            continue
        programs.progress(name)
        try:
            for row in part.measure(options, place, ranks, case):
                rows.append({"part": part.name, "place": place.name, "ranks": ranks, **row})
        except (programs.Failed, programs.Absent) as why:
            problems.append(f"{name}: {why}")
    programs.progress("")
    return rows


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--build", type=Path, default=programs.HERE.parent.parent / "build")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--backends", type=list_of(str), default="gloo,ring",
                        help="ratios are to the first (default %(default)s)")
    parser.add_argument("--ranks", type=list_of(int), default="2,4")
    parser.add_argument("--places", type=list_of(str), default="host,namespaces")
    parser.add_argument("--sizes", type=list_of(parse_size),
                        default="4,1K,4K,16K,64K,256K,1M,4M,16M,64M")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=50,
                        help="largest number of timed calls in a turn")
    parser.add_argument("--batch", type=int, default=1024, help="samples per rank in overlap")
    parser.add_argument("--bind", choices=["core", "none"], default="core")
    parser.add_argument("--only", default="", metavar="REGEX",
                        help="measure only these, such as calls.host.2.barrier")
    parser.add_argument("--quick", action="store_true", help="only test that everything runs")
    parser.add_argument("--json", type=Path, help="write every round to this file")
    parser.add_argument("--html", type=Path, help="write tables and plots to this file")
    parser.add_argument("--svg", type=Path, metavar="FOLDER", help="write the plots to this folder")
    options = parser.parse_args()
    if options.quick:
        vars(options).update(QUICK)
    options.files = options.words[1:] if options.words[:1] == ["show"] else None
    options.parts = options.words or list(PARTS)
    unknown = [word for word in options.parts if word not in PARTS and options.files is None]
    if unknown:
        parser.error(f"unknown part {unknown[0]}; known: {', '.join(PARTS)}")
    return options


def measured(options):
    with ExitStack() as stack:
        options.folder = stack.enter_context(tempfile.TemporaryDirectory())
        places, absent = places_of(options, stack)
        problems = []
        rows = measure_all(options, places, problems)
    return {"cores": os.cpu_count(), "absent": absent, "problems": problems, "rows": rows}


def joined(files):
    found = {"cores": os.cpu_count(), "absent": {}, "problems": [], "rows": []}
    for file in files:
        one = json.loads(Path(file).read_text())
        found["rows"] += one["rows"]
        found["problems"] += one["problems"]
        found["absent"].update(one["absent"])
    return found


def main():
    options = parse_options()
    found = measured(options) if options.files is None else joined(options.files)
    for name, why in found["absent"].items():
        print(f"absent: {name}: {why}")
    print(torch_page.text(found["rows"]))
    for problem in found["problems"]:
        print(f"problem: {problem}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.html:
        options.html.write_text(torch_page.page(found["rows"]))
    if options.svg:
        torch_page.write_plots(options.svg, found["rows"])
    return 1 if found["problems"] or not found["rows"] else 0


if __name__ == "__main__":
    sys.exit(main())
