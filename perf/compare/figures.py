# SPDX-License-Identifier: Apache-2.0
"""Computes sizes, medians, intervals and tables for the comparisons, with pure functions.

The speed of a machine changes from minute to minute. So in each round, the contenders run one after
the other, in rotating order, and ratios are taken within a round. A round is a dictionary of times
by name. Intervals are bootstrap intervals: rounds are resampled with replacement, the statistic is
computed for each resample, and the interval has the middle 95 % of the results.
"""

import argparse
import math
import random
import statistics

UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
RESAMPLES = 1000


def parse_size(text):
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    try:
        return int(float(number) * (UNITS[unit] if unit else 1))
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"{text}: not a size like 8, 64K, 1M") from None


def size_name(size):
    for unit in ("G", "M", "K"):
        if size >= UNITS[unit] and size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]}{unit}"
    return str(size)


def list_of(parse):
    """@return a parser of comma lists, for argparse. @param parse  parses one element"""
    def parse_list(text):
        return [parse(part) for part in text.split(",")]
    parse_list.__name__ = f"comma list of {parse.__name__.removeprefix('parse_')}"
    return parse_list


def sizes_between(low, high, factor):
    """@return sizes from low on, each factor times the one before; high is always the last size."""
    sizes = []
    while low < high:
        sizes.append(low)
        low *= factor
    return [*sizes, high]


def rotated(items, number):
    """@return the items in the order of round `number`: in len(items) rounds each item is first
    once."""
    start = number % len(items) if items else 0
    return [*items[start:], *items[:start]]


# ---- Ratios -------------------------------------------------------------------------------


def known_of(values):
    return [value for value in values if value is not None]


def counted(count, noun):
    return f"{count} {noun}" + ("" if count == 1 else "s")


def median(values):
    known = known_of(values)
    return statistics.median(known) if known else None


def geometric_mean(values):
    positive = known_of(values)
    return math.exp(statistics.fmean(map(math.log, positive))) if positive else None


def speed(times, ours, theirs):
    """@return how many times as fast `ours` was as `theirs` in one round; None if one is
    missing."""
    if times.get(ours) is None or times.get(theirs) is None:
        return None
    return times[theirs] / times[ours]


def speeds(rounds, ours, theirs):
    return [speed(times, ours, theirs) for times in rounds]


def fastest(rounds, names):
    """@return the name with the smallest median time; None if there are no times."""
    middle = {name: median(times.get(name) for times in rounds) for name in names}
    known = [name for name in names if middle[name] is not None]
    return min(known, key=middle.get) if known else None


def bootstrap(columns, statistic, resamples=RESAMPLES, seed=1):
    """@return the 95 % interval of statistic(columns); None without values. Each column has one
    value for each round, or None if it is missing. A resample takes the same rounds of all
    columns."""
    rounds = len(columns[0]) if columns else 0
    drawn, source = [], random.Random(seed)
    for _ in range(resamples):
        picks = source.choices(range(rounds), k=rounds) if rounds else []
        value = statistic([[column[i] for i in picks] for column in columns])
        if value is not None:
            drawn.append(value)
    drawn.sort()
    return (drawn[int(0.025 * len(drawn))], drawn[int(0.975 * len(drawn))]) if drawn else None


def median_of_one(columns):
    return median(columns[0])


def mean_of_medians(columns):
    return geometric_mean(median(column) for column in columns)


def summary(columns, statistic):
    """@return the statistic and its interval, as they are written to JSON."""
    value = statistic(columns) if columns else None
    return {"ratio": value, "interval": None if value is None else bootstrap(columns, statistic)}


def cell_summary(ratios):
    return summary([ratios], median_of_one)


def row_summary(cells):
    """@return the geometric mean over cells. Each cell is a list of the ratios of all rounds."""
    return summary(cells, mean_of_medians)


# ---- Text ---------------------------------------------------------------------------------


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def interval_text(found):
    if found["ratio"] is None:
        return "-"
    low, high = found["interval"]
    return f"{found['ratio']:.2f} [{low:.2f} {high:.2f}]"


def table(lines):
    """@return the lines as text, with their words in right-aligned columns."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(line, widths))
                     for line in lines)
