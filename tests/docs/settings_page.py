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

import json
import sys
from pathlib import Path

import generated_page
from generated_page import Failed

TEMPLATE = Path(__file__).resolve().parent / "settings_page.md"
HEAD = "| variable | unit | default | NCCL name | meaning |\n|---|---|---|---|---|"


def variables(ringinfo):
    """The rows of `ringinfo env` by name."""
    rows = json.loads(generated_page.output_of(ringinfo, "env", "--json"))
    return {row["name"]: row for row in rows}


def cell(text):
    return text.replace("|", "\\|") if text else "–"


def default_of(row):
    """A default that is a phrase, "the CPU's best", is not a value."""
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


def make(ringinfo):
    return page(generated_page.template_text(TEMPLATE), variables(ringinfo))


if __name__ == "__main__":
    sys.exit(generated_page.main(__doc__, "ringinfo", make, "settings",
                                 "what ringinfo env and settings_page.md give"))
