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
PARTS = ["data", "forward", "backward", "step", "wait", "bubble_wait", "transfer",
         "reduce", "other"]
HTML = "{http://www.w3.org/1999/xhtml}"
MEMORY = {"parameters": 3 << 20, "gradients": 2 << 20, "states": 1 << 20, "live": 0,
          "activations": 1 << 19, "batch": 0}

# Two stages, two micro-batches: begin and end of forward, of backward; ends by the schedule.
PIPELINE = {"pipeline": {"step": 2, "stages": 2, "micro_batches": 2, "span": 0.01,
                         "busy": [0.008, 0.004],
                         "measured": [[[0, 0.001, 0.004, 0.007], [0.001, 0.002, 0.007, 0.01]],
                                      [[0.001, 0.002, 0.002, 0.003], [0.003, 0.004, 0.004, 0.005]]],
                         "predicted": [[[1, 4], [2, 6]], [[2, 3], [4, 5]]]}}
SLOTS = [[[0, 1, 3, 4], [1, 2, 5, 6]], [[1, 2, 2, 3], [3, 4, 4, 5]]]


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
               "accuracy": 0.9 + 0.01 * epoch, "test_loss": 3 / epoch, "samples_per_s": 1000,
               "overlap": 0.625, "seconds": dict(zip(PARTS, range(1, 10))),
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
                                       "0.1111111111", "0.92", "1.5", "1005"])
        self.assertIn(["optimizer.type", "SGD<&>"], rows)
        self.assertIn(["1", "10.0", "20.0", "50 %"], rows)
        titles = [title.text for title in page.iter(HTML + "title")]
        for part, seconds in zip(PARTS, range(1, 10)):
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

    def test_the_losses_of_the_test_set_are_drawn(self):
        page = self.page(self.write("run.jsonl", metrics(9)))
        ((first, last),) = self.lines(page, "Test loss")
        self.assertLess(first[0], last[0])
        self.assertLess(first[1], last[1])  # 3 is above 1.5

    def test_what_is_not_known_is_not_drawn(self):
        lines = list(metrics(4, epochs=1))
        lines[2]["loss"] = lines[2]["grad_norm"] = None  # an update that was skipped
        lines[-1]["accuracy"] = lines[-1]["test_loss"] = None
        page = self.page(self.write("skipped.jsonl", lines))
        self.assertNotIn("nan", self.text)
        self.assertEqual(len(self.lines(page, "Loss")[0]), 3)

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
        widths = [float(rect.get("width")) for rect in page.iter(HTML + "rect")][:9]
        for width, seconds in zip(widths, range(1, 10)):
            self.assertAlmostEqual(width, sum(widths) * seconds / 45, delta=0.02)

    def figures(self, page):
        figures = list(page.iter(HTML + "figure"))
        return {figure.find(HTML + "figcaption").text: figure for figure in figures}

    def test_a_pipeline_is_drawn_beside_its_schedule(self):
        page = self.page(self.write("run.jsonl", [*metrics(2), PIPELINE]))
        figures = self.figures(page)
        measured = figures["Pipeline as it ran, update 2"]
        counted = figures["Pipeline with passes of equal length"]
        for figure, rows, unit in ((measured, PIPELINE["pipeline"]["measured"], 440 / 0.010),
                                   (counted, SLOTS, 440 / 6)):
            want = [(begin, end) for row in rows for micro in row
                    for begin, end in (micro[:2], micro[2:])]
            rects = list(figure.iter(HTML + "rect"))
            self.assertEqual([rect.get("class") for rect in rects], ["f0", "f1"] * 4)
            for rect, (begin, end) in zip(rects, want, strict=True):
                self.assertAlmostEqual(float(rect.get("x")), 90 + begin * unit, delta=0.01)
                self.assertAlmostEqual(float(rect.get("width")), (end - begin) * unit, delta=0.01)
            tops = [float(rect.get("y")) for rect in rects]
            self.assertEqual([top - tops[0] for top in tops], [0] * 4 + [22] * 4)
        titles = [title.text for title in measured.iter(HTML + "title")]
        self.assertEqual(titles[1], "backward 0: 3 ms from 4 on")
        self.assertEqual([text.text for text in measured.iter(HTML + "text")
                          if text.text.startswith("busy")], ["busy 80.0 %", "busy 40.0 %"])
        self.assertIn("idle 40.0 % of 10 ms; 33.3 % of 6 slots", self.text)
        self.assertIn("p = 2 stages and m = 2 micro-batches", self.text)

    def test_a_pipeline_that_is_none_is_not_drawn(self):
        whole = PIPELINE["pipeline"]
        measured = [[[0, 1, "2", 3]]], [[[1, 0, 2, 3]]], [[[0, 1e300, 2, 3]]], [[[0, 0, 0, 0]]], [
            [[0, 1, 2, 3, 4]]], [[[0, 1]]], [[]], [], 1
        predicted = [[1, 2]], [[[-1, 2]]], [[[]]], None
        for wrong in ({}, 1, [], *({**whole, "measured": numbers} for numbers in measured),
                      *({**whole, "predicted": numbers} for numbers in predicted)):
            page = self.page(self.write("run.jsonl", [*metrics(2), {"pipeline": wrong}]))
            self.assertFalse([title for title in self.figures(page) if "Pipeline" in title])

    def bars(self, page, title):
        for figure in page.iter(HTML + "figure"):
            if figure.find(HTML + "figcaption").text.startswith(title):
                names = [text.text for text in figure.iter(HTML + "text")]
                return [name for name in names if name.startswith(("rank", "epoch"))]
        self.fail(f"no figure {title}")

    def test_all_ranks_have_a_bar_of_memory(self):
        page = self.page(self.write("run.jsonl", metrics(1, ranks=70)))
        self.assertEqual(self.bars(page, "Memory"), [f"rank {r}" for r in range(70)])
        self.assertNotIn("are drawn", self.text)

    def test_epochs_and_runs_that_are_not_drawn_are_told(self):
        page = self.page(self.write("run.jsonl", [line for _ in range(33) for line in
                                                  metrics(1, epochs=70)]))
        self.assertEqual(len(self.bars(page, "Where")), 32)
        self.assertEqual(self.bars(page, "Where")[-1], "epoch 70")
        self.assertIn("<p>32 of 70 epochs are drawn.</p>", self.text)
        self.assertIn("<p>32 of 33 runs are drawn.</p>", self.text)
        self.assertEqual(len(self.lines(page, "Loss")), 32)

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
        self.assertEqual(self.rows(page)[1][6:10], ["1", "1", "", ""])
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
