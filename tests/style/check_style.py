#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of form for all sources of the tree: lines of 100 columns, no tabs and no blanks at line
ends, a licence line, header guards, and one name a file; and nothing at the top but what belongs
there. Product and documents use none of the words that docs/style.md replaces.

    check_style.py TREE

Exit status 1 if a rule is broken; each line says where.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOMS = ["libring", "transport", "kernels", "train", "perf", "tests", "docs/examples", ".ci"]
# Beside hidden files and build folders.
TOP = {"CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "check",
       "demo", "docs", "kernels", "libring", "perf", "tests", "train", "transport"}
SOURCES = {".c", ".cu", ".h", ".py", ".sh"}
COLUMNS = 100  # in shell scripts commands may be longer
# Included once for each use, or data that a program wrote.
NO_GUARD = {"behaviours.h", "broken_targets.h", "cast.h", "fold.h", "fold_type.h",
            "layer_kernels.h", "optimizer_kernels.h", "stored_optimizer.h", "targets.h"}


def sources(tree):
    for room in ROOMS:
        for path in sorted((tree / room).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                yield path


def faults_of_lines(lines, columns):
    for number, line in enumerate(lines, 1):
        if len(line) > columns:
            yield number, f"{len(line)} columns, {columns} are allowed"
        if "\t" in line:
            yield number, "a tab"
        if line != line.rstrip():
            yield number, "blanks at the end"


def faults_of_file(path, text):
    lines = text.split("\n")
    yield from faults_of_lines(lines, 1000 if path.suffix == ".sh" else COLUMNS)
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
        yield 1, "no licence line"
    guard = re.search(r"^#ifndef (\w+)\n#define \1$", text, re.M)
    if path.suffix == ".h" and path.name not in NO_GUARD and not guard:
        yield 1, "no header guard"
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield len(lines), "must end with one line end"


# Words that docs/style.md replaces; "behind" in comments and messages, where it nearly always means
# "after".
WORDS = re.compile(r"(?<!there )\b(is|are|was|were) none\b|\bnone (is|are)\b|\b(mend(s|ed|ing)?|"
                   r"whoever|whomever|thereby|shall|anew|lest|ere|hitherto|therefrom|thereof|"
                   r"whence)\b", re.I)
BEHIND = re.compile(r"\bbehind\b", re.I)
COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.S)
PRODUCT = ("libring", "transport", "kernels", "train", "perf")


def faults_of_words(path, text):
    """The words in comments and texts of C, and in documents."""
    if path.suffix == ".md":
        parts, patterns = [(0, text)], (WORDS,)
    else:
        parts, patterns = [(m.start(), m[0]) for m in COMMENTS.finditer(text)], (WORDS, BEHIND)
    for start, part in parts:
        for pattern in patterns:
            for found in pattern.finditer(part):
                line = text.count("\n", 0, start + found.start()) + 1
                yield line, f'"{found[0]}": see the table in docs/style.md'


def documents(tree):
    yield tree / "README.md"
    for path in sorted((tree / "docs").rglob("*.md")):
        if "decisions" not in path.parts and path.name != "style.md":
            yield path


def faults_of_names(paths):
    """Tests may name their files like what they test."""
    places = defaultdict(list)
    for path in paths:
        if path.suffix in {".c", ".h"} and "tests" not in path.parts:
            places[path.name].append(path)
    for same in places.values():
        for path in same[1:]:
            yield path, f"the same name as {same[0]}"


def faults_of_top(tree):
    """A core dump, for one."""
    for path in sorted(tree.iterdir()):
        if path.name not in TOP and not path.name.startswith((".", "build")):
            yield path, 1, "does not belong at the top"


def check(tree):
    paths = list(sources(tree))
    faults = [(path, number, what) for path in paths
              for number, what in faults_of_file(path, path.read_text(encoding="utf-8"))]
    texts = [path for path in paths if path.suffix in {".c", ".cu", ".h"}
             and path.relative_to(tree).parts[0] in PRODUCT] + list(documents(tree))
    faults += [(path, number, what) for path in texts
               for number, what in faults_of_words(path, path.read_text(encoding="utf-8"))]
    faults += list(faults_of_top(tree))
    relative = [path.relative_to(tree) for path in paths]
    faults += [(tree / path, 1, what) for path, what in faults_of_names(relative)]
    return len(paths), faults


def main():
    tree = Path(sys.argv[1])
    count, faults = check(tree)
    for path, number, what in faults:
        print(f"{path.relative_to(tree)}:{number}: {what}")
    print(f"{count} files, {len(faults)} faults")
    return 1 if faults or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
