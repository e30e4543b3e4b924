#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ringtrain report: the page is well-formed, needs nothing else, and its numbers are the metrics'.

    test_page.py FOLDER_OF_PROGRAMS
"""

import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

RINGTRAIN = str(Path(sys.argv[1]).resolve() / "ringtrain")
PARTS = ["data", "forward", "backward", "step", "wait", "transfer", "reduce", "other"]
HTML = "{http://www.w3.org/1999/xhtml}"
MEMORY = {"parameters": 3 << 20, "gradients": 2 << 20, "states": 1 << 20, "live": 0,
          "activations": 1 << 19, "batch": 0}


def metrics(steps, ranks=2, epochs=2):
    """Lines as --metrics writes them."""
    yield {"run": {"model": "a <b> & \"c\"", "parameters": 42, "ranks": ranks, "seed": 7,
                   "started": "2026-01-31T12:00:00Z", "memory": [MEMORY] * ranks,
                   "config": {"optimizer.type": "SGD<&>"}}}
    for step in range(1, steps + 1):
        yield {"step": step, "epoch": 1, "loss": 1 / step, "lr": 0.001 * step, "grad_norm": 2.5,
               "samples_per_s": 1000 + step}
    for epoch in range(1, epochs + 1):
        yield {"after_epoch": epoch, "after_step": steps, "loss": 0.5,
               "accuracy": 0.9 + 0.01 * epoch, "samples_per_s": 1000,
               "overlap": 0.625, "seconds": dict(zip(PARTS, range(1, 9))),
               "devices": [{"resident": 10 << 20, "peak": 20 << 20, "cpu": 0.5}] * ranks}


class Page(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = Path(self.folder.name)

    def write(self, name, lines, end=""):
        path = self.at / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines) + end, encoding="utf-8")
        return path

    def report(self, *words):
        return subprocess.run([RINGTRAIN, "report", *map(str, words)], cwd=self.at, text=True,
                              capture_output=True, check=False)

    def page(self, *runs):
        done = self.report(*runs)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.text = (self.at / "report.html").read_text(encoding="utf-8")
        return ElementTree.fromstring(self.text)

    def rows(self, page):
        return [["".join(cell.itertext()) for cell in row] for row in page.iter(HTML + "tr")]

    def lines(self, page, title):
        for figure in page.iter(HTML + "figure"):
            if figure.find(HTML + "figcaption").text == title:
                lines = [line.get("points").split() for line in figure.iter(HTML + "polyline")]
                return [[tuple(map(float, at.split(","))) for at in line] for line in lines]
        self.fail(f"no figure {title}")

    def test_numbers_are_the_metrics(self):
        page = self.page(self.write("run.jsonl", metrics(9)))
        rows = self.rows(page)
        self.assertEqual(rows[1][1:], ["a <b> & \"c\"", "42", "2", "7", "2026-01-31T12:00:00Z", "9",
                                       "0.1111111111", "0.92", "1005"])
        self.assertIn(["optimizer.type", "SGD<&>"], rows)
        self.assertIn(["1", "10.0", "20.0", "50 %"], rows)
        titles = [title.text for title in page.iter(HTML + "title")]
        for part, seconds in zip(PARTS, range(1, 9)):
            self.assertEqual(titles.count(f"{part}: {seconds} s"), 2)
        self.assertEqual(titles.count("parameters: 3 MiB"), 2)
        self.assertIn("62.5 % of the reduction", self.text)

    def test_lines_lie_where_the_values_are(self):
        page = self.page(self.write("run.jsonl", metrics(9)))
        (loss,) = self.lines(page, "Loss")
        self.assertEqual(len(loss), 9)
        first, last = loss[0], loss[-1]
        for step, (x, y) in enumerate(loss, 1):
            share = (1 / step - 1 / 9) / (1 - 1 / 9)
            self.assertAlmostEqual(x, first[0] + (last[0] - first[0]) * (step - 1) / 8, delta=0.11)
            self.assertAlmostEqual(y, last[1] + (first[1] - last[1]) * share, delta=0.11)
        self.assertLess(first[1], last[1])  # the largest loss is at the top

    def test_ticks_stand_at_their_values(self):
        page = self.page(self.write("run.jsonl", metrics(9)))
        (rate,) = self.lines(page, "Samples a second")  # 1001 to 1009
        figure = next(figure for figure in page.iter(HTML + "figure")
                      if figure.find(HTML + "figcaption").text == "Samples a second")
        ticks = [(float(text.text), float(text.get("y")) - 4) for text in figure.iter(HTML + "text")
                 if text.get("class") == "end" and text.text != "update"]
        self.assertEqual([value for value, _ in ticks], [1002, 1004, 1006, 1008])
        for value, y in ticks:
            share = (value - 1001) / 8
            self.assertAlmostEqual(y, rate[0][1] + (rate[-1][1] - rate[0][1]) * share, delta=0.11)

    def test_bars_are_as_wide_as_their_parts(self):
        page = self.page(self.write("run.jsonl", metrics(3, epochs=1)))
        widths = [float(rect.get("width")) for rect in page.iter(HTML + "rect")][:8]
        for width, seconds in zip(widths, range(1, 9)):
            self.assertAlmostEqual(width, sum(widths) * seconds / 36, delta=0.02)

    def test_long_runs_are_thinned_and_keep_their_mean(self):
        page = self.page(self.write("run.jsonl", metrics(5000)))
        (rate,) = self.lines(page, "Samples a second")
        self.assertEqual(len(rate), 400)
        middle = (rate[0][1] + rate[-1][1]) / 2
        self.assertAlmostEqual(sum(y for _, y in rate) / len(rate), middle, delta=1)

    def test_runs_are_drawn_over_each_other(self):
        one = self.write("one.jsonl", metrics(4))
        self.write("two/metrics.jsonl", [*metrics(3), *metrics(2)])  # two, one behind the other
        page = self.page(one, self.at / "two")
        self.assertEqual([len(line) for line in self.lines(page, "Loss")], [4, 3, 2])
        self.assertEqual([row[6] for row in self.rows(page)[1:4]], ["4", "3", "2"])

    def test_the_page_needs_nothing_else(self):
        page = self.page(self.write("run.jsonl", metrics(2)))
        tags = {element.tag.replace(HTML, "") for element in page.iter()}
        self.assertFalse(tags & {"script", "link", "img", "iframe", "object"})
        self.assertEqual(self.text.count("http"), 1)  # the name space
        self.assertIn("prefers-color-scheme:dark", self.text)

    def test_what_a_killed_run_left_is_enough(self):
        page = self.page(self.write("run.jsonl", list(metrics(3))[:3], end='{"step": 3, "ep'))
        self.assertEqual([len(line) for line in self.lines(page, "Loss")], [2])
        page = self.page(self.write("old.jsonl", list(metrics(3))[1:2]))  # without the run's line
        self.assertEqual(self.rows(page)[1][6:9], ["1", "1", ""])
        self.page(self.write("start.jsonl", list(metrics(3))[:1]))

    def test_what_is_no_metrics_is_refused(self):
        (self.at / "text").write_text('{"step": 1}\nhello\n', encoding="utf-8")
        (self.at / "empty").write_text("", encoding="utf-8")
        for words, status, error in (
                (["text"], 1, "ringtrain report: text:2: no JSON object; give what --metrics "),
                (["empty"], 1, "ringtrain report: empty: no metrics; give what --metrics wrote"),
                (["none"], 1, "ringtrain report: none: No such file or directory"),
                ([], 2, "ringtrain report: which run?")):
            done = self.report(*words)
            self.assertEqual(done.returncode, status)
            self.assertTrue(done.stderr.startswith(error), done.stderr)
            self.assertFalse((self.at / "report.html").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
