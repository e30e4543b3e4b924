# SPDX-License-Identifier: Apache-2.0
"""Writes the comparison as one HTML page without other files. It has charts of times and of
bandwidths over sizes for each number of ranks, with a line for each contender and logarithmic axes,
and below them the table."""

import math
from html import escape

from figures import counted, number, size_name

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 340, 64, 12, 12, 36
COLOURS = ["#c2410c", "#1d4ed8", "#047857", "#7c3aed", "#b45309", "#be185d", "#0e7490", "#4d7c0f"]
DASHED = {"limit": "#6b7280", "predicted": "#9ca3af"}  # grey, because they are not contenders
STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
svg { width: 100%; height: auto } svg text { font-size: 11px; fill: currentColor }
.grid { stroke: currentColor; stroke-opacity: .15 } .curve { fill: none; stroke-width: 2 }
figure { margin: 1.5rem 0 } figcaption { font-weight: 600 }
.legend span { margin-right: 1.2rem; white-space: nowrap }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
td, th { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #8884 }
"""


def bus_bandwidth(ranks, size, time_us):
    """@return the bus bandwidth in GB/s, as nccl-tests defines it."""
    return 2 * (ranks - 1) / ranks * size / time_us / 1e3


# ---- Charts -------------------------------------------------------------------------------


class Axis:
    """Maps positive values by a logarithmic scale to coordinates between start and end."""

    def __init__(self, values, start, end, base):
        low, high = min(values), max(values)
        self.first = math.floor(math.log(low, base))
        self.last = max(math.ceil(math.log(high, base)), self.first + 1)
        self.start, self.end, self.base = start, end, base

    def at(self, value):
        share = (math.log(value, self.base) - self.first) / (self.last - self.first)
        return self.start + share * (self.end - self.start)

    def ticks(self, most):
        step = max(1, math.ceil((self.last - self.first) / most))
        return [float(self.base) ** power for power in range(self.first, self.last + 1, step)]


def grid(x, y):
    for value in x.ticks(10):
        yield (f'<path class="grid" d="M{x.at(value):.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
               f'<text x="{x.at(value):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">'
               f"{size_name(int(value))}</text>")
    for value in y.ticks(8):
        yield (f'<path class="grid" d="M{LEFT} {y.at(value):.1f}H{WIDTH - RIGHT}"/>'
               f'<text x="{LEFT - 6}" y="{y.at(value) + 4:.1f}" text-anchor="end">{value:g}</text>')


def curve(points, x, y, colour, dashed):
    way = "L".join(f"{x.at(size):.1f} {y.at(value):.1f}" for size, value in points)
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<path class="curve" stroke="{colour}"{dash} d="M{way}"/>'


def colours(names):
    plain = iter(COLOURS * len(names))
    return {name: DASHED.get(name) or next(plain) for name in names}


def chart(title, curves, unit):
    """@param curves  lists of (size, value) by name; values are above 0"""
    points = [point for line in curves.values() for point in line]
    if not points:
        return ""
    x = Axis([size for size, _ in points], LEFT, WIDTH - RIGHT, 2)
    y = Axis([value for _, value in points], HEIGHT - BOTTOM, TOP, 10)
    colour = colours(list(curves))
    drawn = [*grid(x, y), *(curve(line, x, y, colour[name], name in DASHED)
                            for name, line in curves.items() if line)]
    legend = "".join(f'<span><b style="color:{colour[name]}">&#9644;</b> {escape(name)}</span>'
                     for name, line in curves.items() if line)
    return (f"<figure><figcaption>{escape(title)}, {escape(unit)} over bytes</figcaption>"
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
            f'{"".join(drawn)}</svg><div class="legend">{legend}</div></figure>')


def curves_of(rows, names, value):
    """@param value  a function of a row and a time in us, which gives the value to draw"""
    return {name: [(row["bytes"], value(row, time)) for row in rows
                   if (time := row["time_us"].get(name)) and row["bytes"] > 0 and
                   value(row, time) > 0] for name in names}


def charts_of(ranks, rows, names):
    times = curves_of(rows, names, lambda row, time: time)
    bandwidths = curves_of(rows, names,
                           lambda row, time: bus_bandwidth(ranks, row["bytes"], time))
    return (chart(f"Time of a call, {counted(ranks, 'rank')}", times, "us") +
            chart(f"Bus bandwidth, {counted(ranks, 'rank')}", bandwidths, "GB/s"))


# ---- The page -----------------------------------------------------------------------------


def table_row(cells, tag="td"):
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def table_of(rows, names, ours):
    head = ["ranks", "bytes", *(f"{name} us" for name in names),
            *(f"{name} / best peer" for name in ours), *(f"{name} / limit" for name in ours)]
    body = [table_row([str(row["ranks"]), size_name(row["bytes"]),
                       *(number(row["time_us"].get(name)) for name in names),
                       *(number(row["vs_best_peer"].get(name)) for name in ours),
                       *(number(row["vs_limit"].get(name)) for name in ours)]) for row in rows]
    return f'<table>{table_row(head, "th")}{"".join(body)}</table>'


def page(title, facts, rows, names, ours):
    """@param facts  lines about the run. @param ours  names of the contenders that have ratios"""
    by_ranks = {}
    for row in rows:
        by_ranks.setdefault(row["ranks"], []).append(row)
    body = "".join(charts_of(ranks, of_ranks, names) for ranks, of_ranks in by_ranks.items())
    lines = "".join(f"<li>{escape(fact)}</li>" for fact in facts)
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
            f"<h1>{escape(title)}</h1><ul>{lines}</ul>{body}"
            f"<h2>Figures</h2>{table_of(rows, names, ours)}</body></html>\n")
