# SPDX-License-Identifier: Apache-2.0
"""Reading Markdown pages: fenced blocks, headings, anchors, links. No more of Markdown than the
documents of this project use."""

import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*(\S*)\s*$")
HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n\s*\n).)+?)(?<!`)\1(?!`)", re.DOTALL)
INLINE_LINK = re.compile(r"(?<=\])\(\s*<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?([^>\s]+)>?", re.MULTILINE)
HTML_LINK = re.compile(r"<[a-z]+\b[^>]*?\b(?:href|src)\s*=\s*\"([^\"]+)\"")
HTML_ANCHOR = re.compile(r"<[a-z]+\b[^>]*?\b(?:id|name)\s*=\s*\"([^\"]+)\"")


@dataclass
class Fence:
    """A fenced block. `line` is the number of its first line of text, from 1."""

    language: str
    line: int
    indent: str
    before: str  # the line directly before the fence
    lines: list = field(default_factory=list)


def all_pages(source):
    """The README and every page under docs/, as paths relative to `source`."""
    found = sorted(Path(source, "docs").rglob("*.md"))
    pages = [page.relative_to(source) for page in found]
    return ([Path("README.md")] if Path(source, "README.md").is_file() else []) + pages


def split_fences(text):
    """@return (the lines of the text, those of fenced blocks as blanks, the blocks)."""
    prose, fences, fence, end, indent, last = [], [], None, "", "", ""
    for number, line in enumerate(text.split("\n"), 1):
        found = FENCE.match(line)
        if fence is None and found:
            indent, end = found.group(1), found.group(2)
            fence = Fence(found.group(3), number + 1, indent, last.strip())
        elif fence is not None and found and not found.group(3) and found.group(2).startswith(end):
            fences.append(fence)
            fence = None
        elif fence is not None:
            fence.lines.append(line.removeprefix(indent))
        prose.append(" " * len(line) if fence is not None or found else line)
        last = line
    if fence is not None:
        fences.append(fence)
    return prose, fences


def fences(text):
    return split_fences(text)[1]


def prose(text):
    """The text, fenced blocks as blanks: what is left stays where it was."""
    return "\n".join(split_fences(text)[0])


def without_code(text):
    """Prose with blanks for code spans too, so that nothing in them looks like a link."""
    return CODE_SPAN.sub(lambda span: re.sub(r"[^\n]", " ", span.group(0)), prose(text))


# ---- Headings ----------------------------------------------------------------------------


def headings(text):
    """(level, text as it is shown) of each heading."""
    rows = []
    for line in prose(text).split("\n"):
        found = HEADING.match(line)
        if found:
            shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found.group(2))
            rows.append((len(found.group(1)), re.sub(r"[`*]", "", shown)))
    return rows


def slug_on_github(heading):
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def slug_on_site(heading):
    """As Python-Markdown does it, by which mkdocs makes the site."""
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode("ascii")
    kept = re.sub(r"[^\w\s-]", "", plain).strip().lower()
    return re.sub(r"[-\s]+", "-", kept)


def anchors_by(slug, separator, text):
    seen, anchors = {}, set(HTML_ANCHOR.findall(text))
    for _, heading in headings(text):
        name = slug(heading)
        anchors.add(name if name not in seen else f"{name}{separator}{seen[name]}")
        seen[name] = seen.get(name, 0) + 1
    return anchors


def anchors(text):
    """(those on GitHub and its like, those on the site) of a page."""
    return anchors_by(slug_on_github, "-", text), anchors_by(slug_on_site, "_", text)


# ---- Links ---------------------------------------------------------------------------------


@dataclass
class Link:
    """A link, image or reference; its target is text[start:end]."""

    target: str
    line: int
    start: int
    end: int


def links(text):
    plain, found = without_code(text), []
    for pattern in INLINE_LINK, REFERENCE, HTML_LINK:
        for match in pattern.finditer(plain):
            line = plain.count("\n", 0, match.start(1)) + 1
            found.append(Link(match.group(1), line, match.start(1), match.end(1)))
    return sorted(found, key=lambda link: link.start)


def is_relative(target):
    return not re.match(r"^([a-z][a-z0-9+.-]*:|//|/)", target, re.IGNORECASE)


def split_target(target):
    """(path, anchor) of a relative link; either may be empty."""
    path, _, anchor = target.partition("#")
    return path, anchor
