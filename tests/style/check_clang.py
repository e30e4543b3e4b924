#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-format and clang-tidy over the tree, with .clang-format and .clang-tidy at its top.

    check_clang.py format TREE
    check_clang.py tidy TREE BUILD [all]    (BUILD: a build folder with compile_commands.json)

tidy looks at one source in six, drawn by a seed that moves from day to day (RING_TEST_SEED), or at
all.

Exit status 1 if a file is not laid out as clang-format does it, or if clang-tidy finds something;
77, with the reason, if the program is not here.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from check_style import sources

SKIP = 77
NOT_FOR_CLANG = {"gemm_onednn.c"}  # GCC's omp.h
AT_ONCE = 8  # files a run of a program


def run(command, files):
    """Runs the command over the files, as many at once as there are cores. @return its outputs."""
    def one(part):
        done = subprocess.run([*command, *part], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr
    parts = [files[i:i + AT_ONCE] for i in range(0, len(files), AT_ONCE)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, parts))


def format_command(tree, _):
    files = [str(path) for path in sources(tree) if path.suffix in {".c", ".cpp", ".cu", ".h"}]
    return ["clang-format", "--dry-run", "-Werror"], files


def tidy_command(_, build):
    """The C sources that the build compiles, but for the tests' own and what it made itself."""
    entries = json.loads((build / "compile_commands.json").read_text())
    files = {str(Path(e["directory"], e["file"]).resolve()) for e in entries}
    own = sorted(f for f in files if f.endswith(".c") and "/tests/" not in f and
                 str(build.resolve()) not in f and Path(f).name not in NOT_FOR_CLANG)
    if sys.argv[4:] != ["all"]:
        seed = int(os.environ.get("RING_TEST_SEED", int(time.time()) // 86400))
        print(f"seed {seed} (RING_TEST_SEED={seed} replays)")
        own = sorted(random.Random(seed).sample(own, len(own) // 6))
    no_warnings = "--extra-arg=-w"  # clang does not know all of GCC's options
    return ["clang-tidy", "-p", str(build), "--quiet", no_warnings], own


def main():
    what, tree = sys.argv[1], Path(sys.argv[2])
    build = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    command, files = (format_command if what == "format" else tidy_command)(tree, build)
    if shutil.which(command[0]) is None:
        print(f"SKIPPED: {command[0]} is not here; apt-get install {command[0]}")
        return SKIP
    faulty = [text for code, text in run(command, files) if code != 0]
    print("".join(faulty), end="")
    print(f"{len(files)} files, {'no fault' if not faulty else 'faults above'}")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
