#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the HTML site of docs/ by mkdocs: FOLDER/html/index.html is its entrance.

    make_site.py FOLDER

mkdocs wants its pages in a folder of their own, so FOLDER/docs is a copy, with what the site needs:
files outside of docs/ that pages link to lie in docs/files, and lists have the blank line before
them that Python-Markdown wants and others do not. The site loads nothing from other hosts; that is
checked.
Exit status: 0 made, 1 something is wrong, 77 mkdocs is not installed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pages

SOURCE = Path(__file__).resolve().parent.parent.parent
GOOD, WRONG, SKIPPED = 0, 1, 77
LIST_ITEM = re.compile(r"^(?:[-*+]|1[.)])\s+\S")
NEEDS_NO_BLANK = re.compile(r"^\s*$|^\s+\S|^(?:[-*+]|\d+[.)])\s")  # before a list item
# A browser fetches these by itself when it shows a page; links are only followed.
FETCHES = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
FOLLOWS = {"a": "href"}
STYLE_FETCH = re.compile(r"(?:url\(|@import)\s*[\"']?\s*((?:https?:)?//[^\"')\s]+)")


class Failed(Exception):
    """Told in one line."""


# ---- The copy --------------------------------------------------------------------------------


def loosen_lists(text):
    """A blank line before each list that follows a paragraph."""
    plain, rows = pages.prose(text).split("\n"), []
    for number, line in enumerate(text.split("\n")):
        if number > 0 and LIST_ITEM.match(plain[number]) and \
                not NEEDS_NO_BLANK.match(plain[number - 1]):
            rows.append("")
        rows.append(line)
    return "\n".join(rows)


def bring_file(source, docs, path):
    """Puts a file from outside of docs/ where the site has it. @return that place in docs/."""
    place = Path("files", path)
    Path(docs, place).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(Path(source, path), Path(docs, place))
    return place


def site_target(source, docs, page, target):
    """@param page  in docs/. @return the target of the same link on the site."""
    path, anchor = pages.split_target(target)
    goal = Path(os.path.normpath(Path("docs", page).parent / path)) if path else None
    if not pages.is_relative(target) or goal is None or goal.parts[0] == "docs":
        return target
    if not Path(source, goal).is_file():
        raise Failed(f"docs/{page}: ({target}) leads to no file")
    shown = os.path.relpath(bring_file(source, docs, goal), page.parent)
    return shown + (f"#{anchor}" if anchor else "")


def site_page(source, docs, page, text):
    indented = [fence.line - 1 for fence in pages.fences(text) if fence.indent]
    if indented:
        raise Failed(f"docs/{page}:{indented[0]}: the site shows no fenced block within a list; "
                     "move it to the margin")
    for link in reversed(pages.links(text)):
        text = text[:link.start] + site_target(source, docs, page, link.target) + text[link.end:]
    return loosen_lists(text)


def copy_docs(source, docs):
    shutil.rmtree(docs, ignore_errors=True)
    shutil.copytree(source / "docs", docs, ignore=shutil.ignore_patterns("mkdocs.yml"))
    for file in sorted(docs.rglob("*.md")):
        page = file.relative_to(docs)
        text = (source / "docs" / page).read_text(encoding="utf-8")
        file.write_text(site_page(source, docs, page, text), encoding="utf-8")


# ---- The site --------------------------------------------------------------------------------


class Addresses(HTMLParser):
    """What a page fetches and where its links lead."""

    def __init__(self):
        super().__init__()
        self.fetched, self.followed = [], []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag in FETCHES:
            self.fetched.append(values.get(FETCHES[tag]) or "")
        if tag in FOLLOWS:
            self.followed.append(values.get(FOLLOWS[tag]) or "")


def is_there(html, page, address):
    """@param page  whose address it is. Addresses on other hosts are always there."""
    path = address.partition("#")[0].partition("?")[0]
    if not path or re.match(r"^([a-z]+:|//)", path):
        return True
    return Path(html if path.startswith("/") else page.parent, path.lstrip("/")).exists()


def check_page(html, page):
    text = page.read_text(encoding="utf-8", errors="replace")
    found = Addresses()
    found.feed(text)
    foreign = [address for address in found.fetched if re.match(r"(https?:)?//", address)]
    foreign += STYLE_FETCH.findall(text)
    missing = [address for address in found.fetched + found.followed
               if not is_there(html, page, address)]
    if foreign:
        raise Failed(f"{page} fetches {foreign[0]}")
    if missing:
        raise Failed(f"{page}: {missing[0]} is not there")


def check_site(html):
    """Nothing is fetched from another host, and nothing is missing."""
    for page in sorted(html.rglob("*.html")):
        check_page(html, page)
    for style in sorted(html.rglob("*.css")):
        foreign = STYLE_FETCH.findall(style.read_text(encoding="utf-8", errors="replace"))
        if foreign:
            raise Failed(f"{style} fetches {foreign[0]}")


def run_mkdocs(folder, html):
    done = subprocess.run(["mkdocs", "build", "--strict", "--config-file", folder / "mkdocs.yml",
                           "--site-dir", html], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode != 0:
        raise Failed(re.sub(r"\x1b\[[\d;]*m", "", done.stdout).strip())


def make(source, folder):
    html = folder / "html"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(html, ignore_errors=True)
    copy_docs(source, folder / "docs")
    shutil.copyfile(source / "docs" / "mkdocs.yml", folder / "mkdocs.yml")
    run_mkdocs(folder, html)
    check_site(html)
    return html


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=SOURCE)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    if shutil.which("mkdocs") is None:
        print("SKIPPED: mkdocs is not installed (Debian: apt-get install mkdocs)")
        return SKIPPED
    try:
        html = make(options.source, options.folder.resolve())
    except Failed as problem:
        print(problem)
        return WRONG
    print(f"{sum(1 for _ in html.rglob('*.html'))} pages: {html}/index.html")
    return GOOD


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
