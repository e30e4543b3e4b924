#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No files of the product call each other in a circle. A file calls another where it names a
function, followed by a parenthesis, that is defined only there, and is not static. Functions that
are handed over as pointers are no calls: so a lower file is told what to call.

    check_circles.py TREE

Exit status 1 for a circle.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOMS = ["libring", "transport", "kernels", "train", "perf"]
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
# Lines from the first column on, up to a brace on a line of its own.
FUNCTION = re.compile(r"^(?![#{}\s])[^;{}#]*?\b(\w+)\((?:[^;{}#]*)\)\n\{", re.M)
ATTRIBUTE = re.compile(r"\b(?:__attribute__\(\(.*?\)\)|[A-Z][A-Z0-9_]*\([\w, ()]*\))\s*")


def functions(text):
    """@return names of all functions and of those that are static."""
    found, static = set(), set()
    for match in FUNCTION.finditer(text):
        head = ATTRIBUTE.sub("", match[0])
        name = re.search(r"(\w+)\(", head)
        if name:
            (static if re.search(r"\bstatic\b", head) else found).add(name[1])
    return found, static


def calls_between(texts):
    """@return {file: files that it calls}."""
    defined, statics = defaultdict(set), {}
    for path, text in texts.items():
        found, statics[path] = functions(text)
        for name in found:
            defined[name].add(path)
    edges = {}
    for path, text in texts.items():
        names = set(re.findall(r"\b([a-z_]\w+)\s*\(", text)) - statics[path]
        owners = [defined[name] for name in names if len(defined.get(name, ())) == 1]
        edges[path] = set().union(*owners) - {path}
    return edges


def reached(edges, start):
    seen, todo = set(), [start]
    while todo:
        for path in edges[todo.pop()] - seen:
            seen.add(path)
            todo.append(path)
    return seen


def circles(edges):
    """@return sets of files, each of which reaches all others of its set."""
    behind = {path: reached(edges, path) for path in edges}
    return {frozenset(other for other in behind[path] if path in behind[other])
            for path in edges if path in behind[path]}


def check(tree):
    texts = {path.relative_to(tree): NO_CODE.sub(" ", path.read_text(encoding="utf-8"))
             for room in ROOMS for path in sorted((tree / room).rglob("*"))
             if path.suffix in {".c", ".cu"}}
    for circle in circles(calls_between(texts)):
        yield "files that call each other: " + " ".join(sorted(map(str, circle)))
    if len(texts) < 100:
        yield f"only {len(texts)} files"


def main():
    faults = list(check(Path(sys.argv[1])))
    print("\n".join(faults + [f"{len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
