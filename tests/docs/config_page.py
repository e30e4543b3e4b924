#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/configuration.md from the program's own table of configuration keys.

    config_page.py --ringtrain BUILD/bin/ringtrain                 prints the page
    config_page.py --ringtrain BUILD/bin/ringtrain --write PAGE    writes it
    config_page.py --ringtrain BUILD/bin/ringtrain --check PAGE    shows what differs, exit status 1

Keys, kinds, defaults and meanings come from `ringtrain --config-keys`, what is said before them
from config_page.md.
"""

import re
import sys
from pathlib import Path

import generated_page
from generated_page import Failed

TEMPLATE = Path(__file__).resolve().parent / "config_page.md"
HEAD = "| key | kind | default | meaning |\n|---|---|---|---|"


def keys(ringtrain):
    """Rows of path, kind, default and meaning, in the table's order."""
    lines = generated_page.output_of(ringtrain, "--config-keys").splitlines()
    rows = [re.split(r" {2,}", line, maxsplit=3) for line in lines]
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
    parts = [generated_page.template_text(TEMPLATE)]
    for section in dict.fromkeys(["", *map(section_of, rows)]):
        title = f"`{section}`" if section else "Top level"
        lines = [table_row(row) for row in rows if section_of(row) == section]
        parts.append("\n".join([f"## {title}\n", HEAD, *lines]) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(generated_page.main(__doc__, "ringtrain", lambda ringtrain: page(keys(ringtrain)),
                                 "keys", "what ringtrain --config-keys gives"))
