# SPDX-License-Identifier: Apache-2.0
"""Turns the results of compare_torch.py into Markdown tables and plots, with pure functions.

A row is one measurement: its place, its parameters, and for each round the times in us by
contender. A ratio says how many times as fast a contender is as Gloo; it is the median over rounds.
"""

import os
from html import escape
from pathlib import Path

import compare_page as plot
from figures import median, number, size_name, speeds

OURS = ["ring", "ring shared"]
PEER = "gloo"
OP_WORDS = {"all_gather_into_tensor": "all_gather", "reduce_scatter_tensor": "reduce_scatter",
            "all_to_all_single": "all_to_all"}


def times(row):
    names = list(dict.fromkeys(name for rounds in row["rounds"] for name in rounds))
    return {name: median(found.get(name) for found in row["rounds"]) for name in names}


def ratio(row, ours, theirs=PEER):
    return median(speeds(row["rounds"], ours, theirs))


def markdown(lines):
    head, *body = lines
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *body])


def grouped(rows, *keys):
    found = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def of_part(rows, part):
    return [row for row in rows if row["part"] == part]


def where(place, ranks):
    return f"{ranks} ranks" + (", two hosts" if place == "namespaces" else "")


# ---- Tables ---------------------------------------------------------------------------------


def short(us):
    return number(us, 1 if us is not None and us < 100 else 0)


def times_table(rows):
    names = [name for name in [PEER, *OURS] if any(name in times(row) for row in rows)]
    ours = [name for name in OURS if name in names and PEER in names]
    lines = [["call", "bytes", *names, *(f"{name} / {PEER}" for name in ours)]]
    for row in rows:
        found = times(row)
        lines.append([OP_WORDS.get(row["op"], row["op"]),
                      "-" if row["op"] == "barrier" else size_name(row["bytes"]),
                      *(short(found.get(name)) for name in names),
                      *(number(ratio(row, name), 1) for name in ours)])
    return markdown(lines)


def cost_table(rows):
    names = list(dict.fromkeys(name for row in rows for name in times(row)))
    lines = [["call of 4 B, us", *names, *(f"{name} - C" for name in OURS if name in names)]]
    for row in rows:
        found = times(row)
        over = [median(round[name] - round["C"] for round in row["rounds"])
                for name in OURS if name in names]
        lines.append([row["way"], *(number(found.get(name)) for name in names),
                      *map(number, over)])
    return markdown(lines)


def communication(row):
    """@return the percentage of a step over Gloo by which it is longer than a step without
    calls."""
    silent = median(round["silent"] / round[PEER] for round in row["rounds"] if PEER in round)
    return None if silent is None else 100 * (1 - silent)


def steps_table(rows):
    names = [name for name in ("silent", PEER, *OURS) if any(name in times(row) for row in rows)]
    lines = [["engine, network", *(f"{name}, ms" for name in names), f"{PEER}'s calls, %",
              *(f"{name} / {PEER}" for name in OURS if name in names)]]
    for row in rows:
        found = times(row)
        lines.append([f"{row['engine']}, {row['model']}",
                      *(number(found[name] / 1e3) for name in names),
                      number(communication(row), 0),
                      *(number(ratio(row, name)) for name in OURS if name in names)])
    return markdown(lines)


def overlap_table(rows):
    lines = [["step, ms", "silent", "ring", "calls in turn", "RING_PROGRESS=none",
              "ring / calls in turn", "ring / none"]]
    for row in rows:
        found = times(row)
        lines.append([f"{row['engine']}, {row['model']}",
                      *(number(found[name] / 1e3, 1)
                        for name in ("silent", "auto", "auto, in turn", "none")),
                      *(number(median(round["auto"] / round[name] for round in row["rounds"]))
                        for name in ("auto, in turn", "none"))])
    return markdown(lines)


TABLES = {"calls": times_table, "call_cost": cost_table, "steps": steps_table,
          "overlap": overlap_table}


def tables(rows):
    """Yields the title and the table of each part, place and number of ranks."""
    for part, table in TABLES.items():
        for (place, ranks), some in grouped(of_part(rows, part), "place", "ranks").items():
            yield f"{part}: {where(place, ranks)}", table(some)


def text(rows):
    return "\n\n".join(f"{title}\n\n{table}" for title, table in tables(rows))


# ---- Plots ----------------------------------------------------------------------------------


def call_curves(rows):
    found = {}
    for row in rows:
        for name, us in times(row).items():
            found.setdefault(name, []).append((row["bytes"], us))
    return found


def drawing(height, parts, title):
    """@return the text of an SVG file."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {plot.WIDTH} {height}" '
            f'width="{plot.WIDTH}" font-family="sans-serif" font-size="11" role="img" '
            f'aria-label="{escape(title)}"><style>.grid {{ stroke: #ccc }} '
            '.curve { fill: none; stroke-width: 2 }</style>'
            f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n')


def legend(colour, y):
    for place, (name, one) in enumerate(colour.items()):
        x = plot.LEFT + 110 * place
        yield (f'<rect x="{x}" y="{y - 9}" width="12" height="9" fill="{one}"/>'
               f'<text x="{x + 16}" y="{y}">{escape(name)}</text>')


def calls_plot(rows, title):
    curves = call_curves(rows)
    points = [point for line in curves.values() for point in line]
    x = plot.Axis([size for size, _ in points], plot.LEFT, plot.WIDTH - plot.RIGHT, 2)
    y = plot.Axis([us for _, us in points], plot.HEIGHT - plot.BOTTOM, plot.TOP, 10)
    colour = plot.colours(list(curves))
    lines = (plot.curve(line, x, y, colour[name], False) for name, line in curves.items())
    return drawing(plot.HEIGHT + 20,
                   [*plot.grid(x, y), *lines, *legend(colour, plot.HEIGHT + 10)], title)


def speedup_plot(rows, title):
    """Draws how many times as fast as Gloo libring is: a colour for each collective, and dashed
    lines for shared tensors."""
    curves = {}
    for row in rows:
        for name in OURS:
            if ratio(row, name):
                curves.setdefault((row["op"], name), []).append((row["bytes"], ratio(row, name)))
    points = [point for line in curves.values() for point in line] + [(4, 1), (4, 10)]
    x = plot.Axis([size for size, _ in points], plot.LEFT, plot.WIDTH - plot.RIGHT, 2)
    y = plot.Axis([speed for _, speed in points], plot.HEIGHT - plot.BOTTOM, plot.TOP, 10)
    colour = plot.colours(list(dict.fromkeys(OP_WORDS.get(op, op) for op, _ in curves)))
    lines = (plot.curve(line, x, y, colour[OP_WORDS.get(op, op)], name == "ring shared")
             for (op, name), line in curves.items())
    return drawing(plot.HEIGHT + 20,
                   [*plot.grid(x, y), *lines, *legend(colour, plot.HEIGHT + 10)], title)


def bar(x, y, width, colour, label):
    return (f'<rect x="{x}" y="{y}" width="{width:.1f}" height="10" fill="{colour}"/>'
            f'<text x="{x + width + 4:.1f}" y="{y + 9}">{label}</text>')


def steps_plot(rows, title):
    """Draws the times of steps as bars. The bars of Gloo all have the same length."""
    names = [name for name in ("silent", PEER, "ring") if name in times(rows[0])]
    colour, left, y, parts = plot.colours(names), 130, 12, []
    for row in rows:
        found = times(row)
        longest = found[PEER]
        parts.append(f'<text x="4" y="{y + 20}">{row["engine"]}, {row["model"]}</text>')
        for name in names:
            parts.append(bar(left, y, 380 * found[name] / longest, colour[name],
                             f"{found[name] / 1e3:.2f} ms"))
            y += 12
        y += 8
    return drawing(y + 20, [*parts, *legend(colour, y + 10)], title)


def sized(rows):
    return [row for row in of_part(rows, "calls") if row["op"] != "barrier"]


def summaries(rows):
    """Yields (file name, title, SVG) of the plots of ratios and of steps."""
    for (place, ranks), some in grouped(sized(rows), "place", "ranks").items():
        title = f"calls, {where(place, ranks)}: times as fast as {PEER}, over bytes"
        if any(name in times(some[0]) for name in OURS):
            yield f"torch-calls-{place}-{ranks}.svg", title, speedup_plot(some, title)
    for (place, ranks), some in grouped(of_part(rows, "steps"), "place", "ranks").items():
        title = f"a training step, {where(place, ranks)}"
        if all(PEER in times(row) for row in some):
            yield f"torch-steps-{place}-{ranks}.svg", title, steps_plot(some, title)


def plots_of_times(rows):
    for (place, ranks, op), some in grouped(sized(rows), "place", "ranks", "op").items():
        title = f"{op}, {where(place, ranks)}: us over bytes"
        yield title, calls_plot(some, title)


def write_plots(folder, rows):
    os.makedirs(folder, exist_ok=True)
    for name, _, svg in summaries(rows):
        Path(folder, name).write_text(svg)


def page(rows):
    """@return an HTML page with all plots and tables, which needs no other files."""
    drawn = [*(found[1:] for found in summaries(rows)), *plots_of_times(rows)]
    figures = "".join(f"<figure><figcaption>{escape(title)}</figcaption>{svg}</figure>"
                      for title, svg in drawn)
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
            f"<title>torch.distributed over libring</title><style>{plot.STYLE}</style></head>"
            f"<body><h1>torch.distributed over libring and Gloo</h1>{figures}"
            f"<pre>{escape(text(rows))}</pre></body></html>\n")
