# SPDX-License-Identifier: Apache-2.0
"""Messages that a page quotes, and the texts of the code that they are made of."""

import re

import pages
from blocks import WILD

# Literals that stand side by side are one text; PRIu64 and its like stand between some.
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
LITERALS = re.compile(rf"{LITERAL}(?:\s*(?:PRI\w+\s*)?{LITERAL})*")
FORMAT = re.compile(r"%[-+ #0']*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]")


def texts_in_code(folders):
    """All texts of the C files there, `…` for what printf() fills in."""
    texts = []
    for folder in folders:
        for file in sorted(folder.rglob("*.c")):
            for found in LITERALS.findall(file.read_text(encoding="utf-8")):
                joined = re.sub(r'"\s*(?:PRI\w+)\s*"', "u", found)
                joined = re.sub(r'(?<!\\)"\s*"', "", joined)[1:-1].replace('\\"', '"')
                texts.append(FORMAT.sub(WILD, joined))
    return "\n".join(texts)


def quoted(text):
    """(line, message) of what stands in code spans in the first column of tables of messages."""
    found, inside = [], False
    for number, line in enumerate(pages.prose(text).split("\n"), 1):
        cells = line.split("|")
        inside = len(cells) > 2 and (inside or cells[1].strip() == "message")
        if inside:
            found += [(number, message) for message in re.findall(r"`([^`]+)`", cells[1])]
    return found


def is_composed(text, known, least=6):
    """Texts are put together from others: each part, the longest first, is in the code; a short one
    has no letters."""
    if not text:
        return True
    for end in range(len(text), 0, -1):
        part = text[:end]
        if (end >= least or not re.search(r"\w", part)) and part in known:
            return is_composed(text[end:], known, least)
    return False


def unknown_parts(message, known):
    """What stands between the `…` of a message and is in no text of the code."""
    parts = [part.strip() for part in message.split(WILD)]
    return [part for part in parts if not is_composed(part, known, min(6, len(part)))]
