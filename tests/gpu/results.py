# SPDX-License-Identifier: Apache-2.0
"""Results of tests/gpu: one line each, printed and written at once, and judged by bars."""

import datetime
import json
import re
import threading

# A name, the least or the most that is good.
BARS = [(r"fold.*, share of the device copy", ">=", 1.0),
        (r"(cast|copy).*, share of the device copy", ">=", 0.97),
        (r"optimiser.*, share of the device copy", ">=", 0.9),
        (r"all_reduce of 256 MiB.* on a stream, share of the bound", ">=", 0.8),
        (r"all_reduce of 8 B, 2 threads on a stream", "<", 15),
        (r"MLP: updates", ">=", 18000.0), (r"LeNet-5: updates", ">=", 3228.0)]


def bar_of(name, value):
    """The bar in words and whether it is met; two empty values if there is no bar."""
    for pattern, sign, limit in BARS:
        if isinstance(value, float) and re.fullmatch(pattern, name):
            return f"{sign} {limit}", value >= limit if sign == ">=" else value < limit
    return "", None


def line_of(row):
    value = row["value"]
    shown = f"{value:.4g}" if isinstance(value, float) else value
    seconds = "" if row["seconds"] is None else f"{row['seconds']:.1f}"
    return (row["stage"], row["name"], f"{shown} {row['unit']}".strip(),
            f"{row['bar']} {row['met']}".strip(), seconds)


class Results:
    """Rows of all stages. `judged` is false in rehearsals, where bars are shown only."""

    def __init__(self, folder, device, judged, stages):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.device, self.judged = folder, device, judged
        self.date = datetime.date.today().isoformat()
        self.lock = threading.Lock()
        path = folder / "results.jsonl"
        kept = [] if not path.exists() else map(json.loads, path.read_text().splitlines())
        # Stages that did not run this time keep their results.
        self.rows = [row for row in kept if row["stage"] not in stages]
        self.json = path.open("w", buffering=1)
        for row in self.rows:
            self.json.write(json.dumps(row) + "\n")
        self.stages = stages

    def add(self, stage, name, value, unit="", good=True, seconds=None, note=""):
        """A figure or a word. Figures that have a bar are judged by it, words by `good`."""
        bar, is_met = bar_of(name, value)
        met = "" if is_met is None else "not judged"
        if is_met is not None and self.judged:
            met, good = ("met" if is_met else "not met"), is_met
        row = {"date": self.date, "device": self.device, "stage": stage, "name": name,
               "value": value, "unit": unit, "bar": bar, "met": met, "good": good,
               "seconds": seconds, "note": note}
        with self.lock:
            self.rows.append(row)
            self.json.write(json.dumps(row) + "\n")
            print("  ".join(cell for cell in line_of(row) if cell)
                  + (" s" if seconds is not None else "") + (f"\n{note}" if note else ""),
                  flush=True)
            self.write_table()

    def of_this_run(self):
        return [row for row in self.rows if row["stage"] in self.stages]

    def write_table(self):
        """results.md: failures first, then bars, then the rest."""
        failed = [row for row in self.rows if not row["good"]]
        bars = [row for row in self.rows if row["good"] and row["bar"]]
        rest = [row for row in self.rows if row["good"] and not row["bar"]]
        lines = [f"{self.date}, {self.device}", ""]
        for title, rows in (("Failures", failed), ("Bars", bars), ("Other results", rest)):
            if rows:
                lines += [f"## {title}", "", "| stage | | result | bar | seconds |",
                          "|---|---|---|---|---|"]
                lines += ["| " + " | ".join(line_of(row)) + " |" for row in rows] + [""]
        (self.folder / "results.md").write_text("\n".join(lines))

    def failures(self):
        return [row for row in self.of_this_run() if not row["good"]]

    def summary(self):
        """Prints failures, then bars, then numbers of results."""
        failed = self.failures()
        print("\nSUMMARY")
        for row in failed + [row for row in self.of_this_run() if row["good"] and row["bar"]]:
            print("FAILED " if not row["good"] else "bar    ",
                  "  ".join(cell for cell in line_of(row) if cell))
        count = len(self.of_this_run())
        print(f"{count - len(failed)} of {count} results are good; see {self.folder}", flush=True)
