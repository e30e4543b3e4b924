#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the emulation cannot show of GPU kernels, read from what their compiler wrote beside each
image: registers within the bounds stated here, no stacks and no spills, loads and stores of 16
bytes, flags of system scope, no memory of a thread's own; where a thread performs one access an
array, no loops, and all of its loads before its stores. Prints the sizes of images.

    check_images.py FOLDER IMAGE...        FOLDER has IMAGE.fatbin, IMAGE.txt, IMAGE.ptx
    check_images.py --none REASON          there are no images: a skip that says why

Exit status 1 if a rule is broken, 77 for a skip.
"""

import argparse
import re
import sys
from pathlib import Path

ARCHITECTURES = {"sm_80", "sm_90"}
LOADS, STORES, FLAGS, TILES, WORDS = "loads", "stores", "flags", "tiles", "words"
STREAMS = {LOADS, STORES}
# The first row whose pattern a kernel's name fits: most registers, and what its PTX must have.
KERNELS = [
    (r"fold_few_e\dm\d", 48, STREAMS | {TILES}),  # 5 blocks of 256 threads a multiprocessor
    (r"fold_few_\w+", 32, STREAMS | {TILES}),  # 8 blocks: all of its threads
    (r"fold_\w+", 64, STREAMS),
    (r"\w+_to_f32", 64, {STORES}),
    (r"f32_to_\w+", 64, {LOADS}),
    (r"(sgd|momentum|adam|lion|adagrad)_\w+", 64, STREAMS),
    (r"scale_\w+", 64, STREAMS),
    (r"squares_f32", 48, {LOADS}),
    (r"squares_\w+", 48, set()),  # 8 bytes are 4 halves
    (r"norm_finish", 32, set()),
    (r"pack", 64, STREAMS),
    (r"map_\w+", 32, STREAMS),
    (r"add_to_rows|sum_\w+|dropout|cross_entropy|mean_squares", 40, set()),  # of layers.cu
    (r"take|judge", 40, set()),  # of updates.cu
    (r"\w+_columns|\w+_pool|\w+_pool_gradient", 64, set()),
    (r"program_chores", 32, {FLAGS}),
    (r"program\w*", 128, STREAMS | {FLAGS, WORDS}),
]
WIDE = r"\.(?:v4\.[busf]32|v2\.[busf]64)\b"
SPLIT = r"\bst\.global(?:\.v2)?\.[bsuf]32\s+\[%rd\d+\+-?(?:4|8|12)\]"
LOADED = r"\bld\.global(?:\.nc)?" + WIDE + r"\s+\{[^}]*\},\s+\[(%rd\d+)"  # the base of an address
PATTERNS = {
    LOADS: [r"\bld\.global(?:\.nc)?" + WIDE],
    STORES: [r"\bst\.global" + WIDE],
    TILES: [],
    WORDS: [r"\bld\.relaxed\.sys\.global\.u64", r"\bst\.relaxed\.sys\.global\.u64"],
    FLAGS: [r"\bld\.acquire\.sys\.", r"\b(?:st|atom\.add)\.release\.sys\."],
}


def row_of(kernel):
    return next((row for row in KERNELS if re.fullmatch(row[0], kernel)), None)


def faults_of_report(text):
    """Of what `ptxas -v` says."""
    seen = {}
    parts = re.split(r"Compiling entry function '(\w+)' for '(\w+)'", text)[1:]
    for kernel, architecture, said in zip(parts[::3], parts[1::3], parts[2::3]):
        seen.setdefault(kernel, set()).add(architecture)
        row = row_of(kernel)
        if row is None:
            yield f"{kernel}: no row of KERNELS states its bounds"
            continue
        registers = int(re.search(r"Used (\d+) registers", said)[1])
        if registers > row[1]:
            yield f"{kernel} for {architecture}: {registers} registers, {row[1]} are stated"
        frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes", said)
        if frame.groups() != ("0", "0", "0"):
            yield f"{kernel} for {architecture}: {frame[0]} spill loads"
    for kernel, architectures in seen.items():
        if architectures != ARCHITECTURES:
            yield f"{kernel}: reported for {sorted(architectures)}"
    if not seen:
        yield "ptxas reported no kernel"


def faults_of_tiles(body):
    """Of code in which a thread folds one vector of two arrays."""
    seen, pairs = set(), 0
    for block in re.split(r"^(?=\$\w+:)", body, flags=re.MULTILINE):
        seen.update(re.findall(r"^(\$\w+):", block))
        back = seen & set(re.findall(r"\bbra(?:\.uni)?\s+(\$\w+)", block))
        if back:
            yield f"a loop to {sorted(back)}"
        for straight in re.split(r"\bbra\b", block):
            stores = [m.start() for m in re.finditer(PATTERNS[STORES][0], straight)]
            loads = [m.start() for m in re.finditer(PATTERNS[LOADS][0], straight)]
            if stores and loads and loads[-1] > stores[0]:
                yield "a load after a store"
            pairs += bool(stores) and len(set(re.findall(LOADED, straight))) == 2
    if pairs < 4:  # sums, products, maxima, minima
        yield f"{pairs} operations that load both vectors, then store; 4 or more are expected"


def faults_of_ptx(text):
    parts = re.split(r"\.entry (\w+)\(", text)[1:]
    for kernel, body in zip(parts[::2], parts[1::2]):
        wanted = row_of(kernel)[2] if row_of(kernel) else set()
        for what in sorted(wanted):
            for pattern in PATTERNS[what]:
                if not re.search(pattern, body):
                    yield f"{kernel}: no {what} as of {pattern}"
        if STORES in wanted and FLAGS not in wanted and re.search(SPLIT, body):
            yield f"{kernel}: 16 bytes that are stored in parts, as of {SPLIT}"
        if TILES in wanted:
            yield from (f"{kernel}: {fault}" for fault in faults_of_tiles(body))
        if re.search(r"\.local\b", body):
            yield f"{kernel}: memory of a thread's own"


def check(folder, names):
    faults = []
    for name in names:
        for suffix, find in (".txt", faults_of_report), (".ptx", faults_of_ptx):
            text = (folder / (name + suffix)).read_text(encoding="utf-8")
            faults += [f"{name}{suffix}: {fault}" for fault in find(text)]
        print(f"{name}.fatbin: {(folder / (name + '.fatbin')).stat().st_size} bytes")
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--none", metavar="REASON")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("images", nargs="*")
    given = parser.parse_args()
    if given.none:
        print(f"SKIPPED: {given.none}")
        return 77
    faults = check(given.folder, given.images)
    print("\n".join(faults + [f"{len(given.images)} images, {len(faults)} faults"]))
    return 1 if faults or not given.images else 0


if __name__ == "__main__":
    sys.exit(main())
