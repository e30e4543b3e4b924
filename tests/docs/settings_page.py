#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/settings.md from the program's own table of variables.

    settings_page.py --ringinfo BUILD/bin/ringinfo                 prints the page
    settings_page.py --ringinfo BUILD/bin/ringinfo --write PAGE    writes it
    settings_page.py --ringinfo BUILD/bin/ringinfo --check PAGE    shows what differs, exit status 1

Names, units, defaults, NCCL names and meanings come from `ringinfo env --json` in an empty
environment; what is said around them is settings_page.md, where `@table NAME...` stands for a table
of these variables. Each variable must be in one of them.
"""

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

TEMPLATE = Path(__file__).resolve().parent / "settings_page.md"
HEAD = "| variable | unit | default | NCCL name | meaning |\n|---|---|---|---|---|"


class Failed(Exception):
    """Told in one line."""


def variables(ringinfo):
    """The rows of `ringinfo env` by name. Nothing is set, so what is shown are the defaults."""
    done = subprocess.run([ringinfo, "env", "--json"], capture_output=True, text=True, timeout=60,
                          env={"LC_ALL": "C.UTF-8", "PATH": os.defpath})
    if done.returncode != 0:
        raise Failed(f"{ringinfo} env --json failed: {done.stderr.strip()}")
    return {row["name"]: row for row in json.loads(done.stdout)}


def cell(text):
    return text.replace("|", "\\|") if text else "–"


def default_of(row):
    """A default that is a phrase, "the best here", is no value."""
    text = row["default"]
    return f"`{text}`" if text and " " not in text else cell(text)


def table_row(row):
    nccl = f"`{row['nccl']}`" if row.get("nccl") else "–"
    return f"| `{row['name']}` | {cell(row['unit'])} | {default_of(row)} | {nccl} | " \
           f"{cell(row['help'])} |"


def table(names, rows):
    unknown = [name for name in names if name not in rows]
    if unknown:
        raise Failed(f"{TEMPLATE.name}: ringinfo env has no {', '.join(unknown)}")
    return "\n".join([HEAD, *(table_row(rows[name]) for name in names)])


def page(template, rows):
    shown, lines = [], []
    for line in template.rstrip("\n").split("\n"):
        words = line.split()
        if words[:1] == ["@table"]:
            shown += words[1:]
            line = table(words[1:], rows)
        lines.append(line)
    missing = [name for name in rows if name not in shown]
    if missing:
        raise Failed(f"{TEMPLATE.name}: no @table has {', '.join(missing)}")
    twice = sorted({name for name in shown if shown.count(name) > 1})
    if twice:
        raise Failed(f"{TEMPLATE.name}: {', '.join(twice)} is in two tables")
    return "\n".join(lines) + "\n"


def template_text():
    """Without the comment that speaks to who edits it."""
    return re.sub(r"\A<!--.*?-->\n+", "", TEMPLATE.read_text(encoding="utf-8"), flags=re.DOTALL)


def check(path, text):
    there = path.read_text(encoding="utf-8") if path.is_file() else ""
    wanted = "what ringinfo env and settings_page.md give"
    rows = list(difflib.unified_diff(there.splitlines(), text.splitlines(), str(path), wanted,
                                     lineterm="", n=1))
    print("\n".join(rows) if rows else "settings: good")
    if rows:
        print(f"Write it anew: {Path(__file__).name} --ringinfo BUILD/bin/ringinfo --write {path}")
    return 1 if rows else 0


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ringinfo", type=Path, required=True)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", type=Path, metavar="PAGE")
    what.add_argument("--write", type=Path, metavar="PAGE")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    try:
        text = page(template_text(), variables(options.ringinfo))
    except Failed as problem:
        print(problem)
        return 1
    if options.check is not None:
        return check(options.check, text)
    if options.write is not None:
        options.write.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
