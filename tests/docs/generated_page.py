# SPDX-License-Identifier: Apache-2.0
"""What the makers of pages from a program's own tables share: command line and comparison."""

import argparse
import difflib
import os
import re
import subprocess
import sys
from pathlib import Path


class Failed(Exception):
    """Told in one line."""


def output_of(program, *words):
    """What the program prints with nothing set, so that what it shows are the defaults."""
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60,
                          env={"LC_ALL": "C.UTF-8", "PATH": os.defpath})
    if done.returncode != 0:
        raise Failed(f"{program} {' '.join(words)} failed: {done.stderr.strip()}")
    return done.stdout


def template_text(template):
    """Without the comment that speaks to who edits it."""
    return re.sub(r"\A<!--.*?-->\n+", "", template.read_text(encoding="utf-8"), flags=re.DOTALL)


def check(page, text, name, source, command):
    there = page.read_text(encoding="utf-8") if page.is_file() else ""
    rows = list(difflib.unified_diff(there.splitlines(), text.splitlines(), str(page), source,
                                     lineterm="", n=1))
    print("\n".join(rows) if rows else f"{name}: good")
    if rows:
        print(f"Write it anew: {command} --write {page}")
    return 1 if rows else 0


def main(doc, program, make, name, source):
    """Command line of a maker.
    program: whose path --PROGRAM gives; make: from that path to the page's text; name: of what is
    made, source: of where it comes from, for messages."""
    parser = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(f"--{program}", dest="path", type=Path, required=True)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", type=Path, metavar="PAGE")
    what.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args()
    try:
        text = make(options.path)
    except Failed as problem:
        print(problem)
        return 1
    if options.check is not None:
        command = f"{Path(sys.argv[0]).name} --{program} BUILD/bin/{program}"
        return check(options.check, text, name, source, command)
    if options.write is not None:
        options.write.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0
