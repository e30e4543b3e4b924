#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests under a sanitizer, in a build of their own. Any report fails a test; nothing is suppressed.

    tests/sanitize/sanitize.py asan|tsan [--all] [--seed N] [--list]

Without --all it draws some tests of each group by a seed that moves from day to day, and builds
only what they need.
"""

import argparse
import json
import os
import random
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
LABELS = {"unit", "transport", "coll", "fuzz", "fault"}
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
           "UBSAN_OPTIONS": "print_stacktrace=1",
           "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}
# Long runs that --all makes, too.
LONG = {"asan": "^full[.]fault[.]liar", "tsan": None}
# One thread: no races. Of these a sample leaves out more.
WITHOUT = {"asan": (), "tsan": ("plan.", "train.models")}
UNDRAWN = {"asan": (), "tsan": ("kernels.", "fuzz.")}


def configure(preset):
    log = TREE / f"build-{preset}.log"
    with log.open("w") as out:
        command = ["cmake", "--preset", preset]
        if subprocess.run(command, cwd=TREE, stdout=out, stderr=out).returncode:
            sys.exit(f"cmake failed; see {log}")
    return TREE / f"build-{preset}"


def commands_of(build):
    """Words of each test's command by its name; ctest itself tells them only of what is built."""
    words = {}
    for file in build.rglob("CTestTestfile.cmake"):
        for name, rest in re.findall(r"^add_test\((\S+) (.*)\)$", file.read_text(), re.MULTILINE):
            words[name.strip("[]=")] = shlex.split(rest)
    return words


def entries_of(build, preset):
    commands = commands_of(build)
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                            capture_output=True, text=True)
    for number, test in enumerate(json.loads(listed.stdout)["tests"], 1):
        properties = {p["name"]: p["value"] for p in test["properties"]}
        if LABELS & set(properties.get("LABELS", [])) and \
                not test["name"].startswith(WITHOUT[preset]):
            yield number, test["name"], commands[test["name"]]


def group_of(name):
    """Tests that differ by their transport or algorithm alone, of one subject, or of one room."""
    words = name.split(".")
    if words[0] == "fault" or len(words) == 1:
        return name
    if len(words) == 2:
        return words[0]
    if words[0] == "transport" and len(words) == 3 and words[1] != "tcp_wire":
        return f"transport.{words[-1]}"
    return ".".join(words[:3] if words[:2] == ["transport", "verbs"] else words[:2])


def drawn(entries, build, preset, seed):
    """One in eight of each group (a room: one in two), at least one; none that runs programs, which
    are not built."""
    groups = {}
    for entry in entries:
        if f"{build}/bin" not in entry[2] and not entry[1].startswith(UNDRAWN[preset]):
            groups.setdefault(group_of(entry[1]), []).append(entry)
    draw = random.Random(seed)
    return sorted(entry for name, group in groups.items() for entry in
                  draw.sample(group, max(1, len(group) // (8 if "." in name else 2))))


def targets_of(entries, build):
    """The programs of the tests, and the doubles that tests find by LD_LIBRARY_PATH."""
    words = {word for _, _, command in entries for word in command}
    programs = [os.path.relpath(word, build) for word in words
                if word.startswith((f"{build}/tests/", f"{build}/bin/"))]
    listed = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], check=True,
                            capture_output=True, text=True).stdout
    known = {line.rpartition(":")[0] for line in listed.splitlines()}
    doubles = [name for name in known if name.startswith("fake_")]
    return sorted(known.intersection(programs)) + doubles


def make(build, targets):
    log = Path(f"{build}.log")
    with log.open("w") as out:
        if subprocess.run(["ninja", "-C", build, *targets], stdout=out, stderr=out).returncode:
            print(log.read_text()[-4000:])
            sys.exit("the build failed")


def test(build, *selection):
    """@return ctest's exit status."""
    report = Path(build, "tests.xml")
    report.unlink(missing_ok=True)
    status = subprocess.run(["ctest", "--test-dir", build, "-j2", *selection,
                             "--output-on-failure", "--no-tests=error", "--output-junit", report],
                            env=os.environ | OPTIONS).returncode
    subprocess.run([TREE / "tests" / "skipped.py", report], check=True)
    return status


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("preset", choices=WITHOUT)
    parser.add_argument("--all", action="store_true", help="every test, not a sample")
    parser.add_argument("--seed", type=int, help="draws samples (RING_TEST_SEED, else the day)")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    return parser.parse_args()


def main():
    given = arguments()
    if given.seed is not None:
        os.environ["RING_TEST_SEED"] = str(given.seed)  # tests draw by it, too
    seed = int(os.environ.get("RING_TEST_SEED", int(time.time()) // 86400))
    build = configure(given.preset)
    entries = list(entries_of(build, given.preset))
    if not given.all:
        entries = drawn(entries, build, given.preset, seed)
        print(f"{given.preset}: {len(entries)} tests drawn by seed {seed} "
              f"(--seed {seed} replays)", flush=True)
    if given.list:
        print("\n".join(name for _, name, _ in entries))
        return 0
    make(build, [] if given.all else targets_of(entries, build))
    numbers = ",".join(str(number) for number, _, _ in entries)
    status = test(build, "-I", f"0,0,0,{numbers}")
    if given.all and LONG[given.preset]:
        status = test(build, "-C", "full", "-R", LONG[given.preset]) or status
    return status


if __name__ == "__main__":
    sys.exit(main())
