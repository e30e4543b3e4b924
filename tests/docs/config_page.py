#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/configuration.md from the program's own table of configuration keys.

    config_page.py --ringtrain BUILD/bin/ringtrain                 prints the page
    config_page.py --ringtrain BUILD/bin/ringtrain --write PAGE    writes it
    config_page.py --ringtrain BUILD/bin/ringtrain --check PAGE    shows what differs, exit status 1

Keys, kinds, defaults and meanings come from `ringtrain --config-keys`, what is said before them
from config_page.md.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

TEMPLATE = Path(__file__).resolve().parent / "config_page.md"
HEAD = "| key | kind | default | meaning |\n|---|---|---|---|"


class Failed(Exception):
    """Told in one line."""


def keys(ringtrain):
    """Rows of path, kind, default and meaning, in the table's order."""
    done = subprocess.run([ringtrain, "--config-keys"], capture_output=True, text=True, timeout=60,
                          env={"LC_ALL": "C.UTF-8", "PATH": os.defpath})
    if done.returncode != 0:
        raise Failed(f"{ringtrain} --config-keys failed: {done.stderr.strip()}")
    rows = [re.split(r" {2,}", line, maxsplit=3) for line in done.stdout.splitlines()]
    odd = [row for row in rows if len(row) != 4]
    if odd or not rows:
        raise Failed(f"{ringtrain} --config-keys: not four columns: {odd[:1]}")
    return rows


def section_of(row):
    path, kind = row[:2]
    return path.split(".")[0] if "." in path or kind == "section" else ""


def table_row(row):
    path, kind, default, meaning = (text.replace("|", "\\|") for text in row)
    return f"| `{path}` | {kind} | {'–' if default == '-' else f'`{default}`'} | {meaning} |"


def page(rows):
    parts = [template_text()]
    for section in dict.fromkeys(["", *map(section_of, rows)]):
        title = f"`{section}`" if section else "Top level"
        lines = [table_row(row) for row in rows if section_of(row) == section]
        parts.append("\n".join([f"## {title}\n", HEAD, *lines]) + "\n")
    return "\n".join(parts)


def template_text():
    """Without the comment that speaks to who edits it."""
    return re.sub(r"\A<!--.*?-->\n+", "", TEMPLATE.read_text(encoding="utf-8"), flags=re.DOTALL)


def check(path, text):
    there = path.read_text(encoding="utf-8") if path.is_file() else ""
    rows = list(difflib.unified_diff(there.splitlines(), text.splitlines(), str(path),
                                     "what ringtrain --config-keys gives", lineterm="", n=1))
    print("\n".join(rows) if rows else "keys: good")
    if rows:
        print(f"Write it anew: {Path(__file__).name} --ringtrain BUILD/bin/ringtrain "
              f"--write {path}")
    return 1 if rows else 0


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ringtrain", type=Path, required=True)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", type=Path, metavar="PAGE")
    what.add_argument("--write", type=Path, metavar="PAGE")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    try:
        text = page(keys(options.ringtrain))
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
