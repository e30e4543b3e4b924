#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What takes too long for every change: the long runs of tests that ctest knows as short ones.

    tests/full.py [--build DIR] [--only REGEX] [--list] [--limit HOURS] [--logs DIR]

Runs one after another, says how each ended, and prints a table of all. Exit status 1 if one failed;
of --list, if a line has lost its entry.
Fuzzers find most with `--build build-asan`.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
SKIPPED = 77
LONG = {"RING_TEST_LONG": "1"}


@dataclass
class Kind:
    """Lines made of those entries of ctest whose whole name matches."""
    name: str  # of a line; \\1 is what the pattern's first group matches
    entries: str
    environment: dict = field(default_factory=dict)
    instead: dict = field(default_factory=dict)  # arguments of the command
    tells: str = ""  # a line of output that belongs to the result


KINDS = [
    Kind("checkpoint.pairs", "train.checkpoint", LONG),
    Kind("checkpoint.kills", "train.resume", {"RING_TEST_KILLS": "100"}, tells="kills up to"),
    Kind("zero", "train.zero", LONG),
    Kind("accuracy.mlp", "train.mnist.adam", instead={"adam": "mlp"}, tells="accuracy"),
    Kind("accuracy.lenet5", "train.mnist.adam", instead={"adam": "lenet5"}, tells="accuracy"),
    Kind(r"fuzz.\1", r"fuzz\.(?!finds)(.*)", {"RING_TEST_FUZZ": "1000000"}),
    Kind(r"joining.\1", r"control\.(strangers|shrink)", LONG),
    Kind("joining.deaths", "control.deaths", {"RING_TEST_JOINS": "200"}),
    Kind("joining.flood", "control.flood", {"RING_TEST_STARTS": "1000"}),
    Kind(r"faults.\1", r"fault\.((kill|shrink)\..*)", {"RING_TEST_KILLS": "100"}),
    Kind(r"faults.\1", r"fault\.(noise.*)", {"RING_TEST_DAMAGES": "1500"}),
    Kind(r"faults.\1", r"fault\.(liar.*)", {"RING_TEST_LIES": "1000"}),
    Kind(r"faults.\1", r"fault\.(shortage.*)", {"RING_TEST_SHORTAGES": "1"}),
    Kind(r"faults.\1", r"fault\.(failing_calls.*)", {"RING_TEST_FAILING_CALLS": "1"}),
    Kind(r"sweep.\1", r"coll\.sweep\.((loop|shm|tcp)\..*)", instead={"pairwise": "full"}),
]


@dataclass
class Line:
    name: str
    kind: Kind
    command: list
    environment: dict
    folder: str

    def shown(self, build):
        """As one types it, from the build folder."""
        words = [f"{k}={v}" for k, v in self.kind.environment.items()]
        return " ".join(words + [word.replace(f"{build}/", "") for word in self.command])


def entries_of(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                            capture_output=True, text=True)
    return [test for test in json.loads(listed.stdout)["tests"] if "command" in test]


def line_of(kind, name, entry):
    properties = {p["name"]: p["value"] for p in entry["properties"]}
    environment = dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))
    return Line(name, kind, [kind.instead.get(word, word) for word in entry["command"]],
                environment | kind.environment, properties["WORKING_DIRECTORY"])


def lines_of(build):
    """@return lines, and patterns that no entry matches: tests with other names, or not built."""
    entries, lines, unmatched = entries_of(build), [], []
    for kind in KINDS:
        matches = [(re.fullmatch(kind.entries, entry["name"]), entry) for entry in entries]
        found = [line_of(kind, match.expand(kind.name), entry)
                 for match, entry in matches if match]
        lines += found
        unmatched += [] if found else [kind.entries]
    return lines, unmatched


def heed_signals():
    """Jobs that a shell starts in the background ignore what tests send themselves."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def run(line, log, limit):
    """Ends all of its processes after the limit. @return exit status, or None."""
    with log.open("w") as out:
        process = subprocess.Popen(line.command, cwd=line.folder, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=out, env=os.environ | line.environment,
                                   start_new_session=True, preexec_fn=heed_signals)
        try:
            return process.wait(limit)
        except BaseException as end:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(end, subprocess.TimeoutExpired):
                return None
            raise


def result_of(line, status, log):
    if status == 0:
        told = [text for text in log.read_text(errors="replace").splitlines()
                if line.kind.tells and re.search(line.kind.tells, text)]
        return "; ".join(["passed"] + told)
    if status == SKIPPED:
        return "skipped"
    return f"FAILED ({'time limit' if status is None else f'exit status {status}'}), see {log}"


def run_all(lines, build, logs, limit):
    """@return rows of the table."""
    rows = []
    for line in lines:
        log = logs / f"{line.name}.log"
        start = time.monotonic()
        result = result_of(line, run(line, log, limit), log)
        rows.append((line.name, f"`{line.shown(build)}`", result,
                     f"{time.monotonic() - start:.0f} s"))
        print(f"{rows[-1][0]}: {rows[-1][2]}, {rows[-1][3]}", flush=True)
    return rows


def print_table(rows):
    print("\n| line | command | result | time |\n|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=TREE / "build", help="default: build")
    parser.add_argument("--only", default="", metavar="REGEX", help="lines whose names match")
    parser.add_argument("--list", action="store_true", help="print names and commands")
    parser.add_argument("--limit", type=float, default=6, metavar="HOURS",
                        help="that a line may take (default: 6)")
    parser.add_argument("--logs", type=Path, help="default: full in the build folder")
    return parser.parse_args()


def main():
    given = arguments()
    build = given.build.resolve()
    if not (build / "CTestTestfile.cmake").exists():
        sys.exit(f"{build} has no tests; cmake --preset release && cmake --build --preset release")
    lines, unmatched = lines_of(build)
    lines = [line for line in lines if re.search(given.only, line.name)]
    for pattern in unmatched:
        print(f"ctest has no entry that matches {pattern}", file=sys.stderr)
    if given.list:
        for line in lines:
            print(f"{line.name:24} {line.shown(build)}")
        return 1 if unmatched else 0
    logs = given.logs or build / "full"
    logs.mkdir(parents=True, exist_ok=True)
    rows = run_all(lines, build, logs, 3600 * given.limit)
    print_table(rows)
    return 1 if not rows or any("FAILED" in row[2] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
