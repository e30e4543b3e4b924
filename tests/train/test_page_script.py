#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ringtrain report: what the page's script draws, run by node over a few parts of a document.

    test_page_script.py FOLDER_OF_PROGRAMS
"""

import json
import re
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from page_runs import PARTS, PIPELINE, PageCase, metrics

NODE = shutil.which("node")
DRAW = Path(__file__).with_name("draw_page.js")
FIGURES = ["Loss", "Test accuracy", "Test loss", "Learning rate", "Norm of the gradient",
           "Samples a second"]
WIDTH, LEFT, RIGHT = 640, 64, 12
SLOTS = [[[0, 1, 3, 4], [1, 2, 5, 6]], [[1, 2, 2, 3], [3, 4, 4, 5]]]


def texts_of(figure, kind=None):
    return [text.text for text in figure.iter("text") if kind is None or text.get("class") == kind]


class Script(PageCase):
    def draw(self, runs, pointers=()):
        """Figures by title. @param pointers  (figure of lines, x) pairs"""
        self.make(*runs)
        words = [str(word) for pointer in pointers for word in pointer]
        done = subprocess.run([NODE, DRAW, self.at / "report.html", *words], text=True,
                              capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.shown = json.loads(done.stdout)
        self.text = re.sub(r"\s+", " ", self.shown["charts"])
        self.root = ElementTree.fromstring(f"<main>{self.shown['charts']}</main>")
        return {figure.find("figcaption").text: figure for figure in self.root.iter("figure")}

    def drawn(self, steps, **about):
        return self.draw([self.write("run.jsonl", metrics(steps, **about))])

    def lines(self, figure):
        lines = [line.get("points").split() for line in figure.iter("polyline")]
        return [[tuple(map(float, at.split(","))) for at in line] for line in lines]

    # ---- Lines

    def test_lines_lie_where_the_values_are(self):
        (loss,) = self.lines(self.drawn(9)["Loss"])
        self.assertEqual(len(loss), 9)
        first, last = loss[0], loss[-1]
        self.assertEqual((first[0], last[0]), (LEFT, WIDTH - RIGHT))
        for step, (x, y) in enumerate(loss, 1):
            share = (1 / step - 1 / 9) / (1 - 1 / 9)
            self.assertAlmostEqual(x, first[0] + (last[0] - first[0]) * (step - 1) / 8, delta=0.02)
            self.assertAlmostEqual(y, last[1] + (first[1] - last[1]) * share, delta=0.02)
        self.assertLess(first[1], last[1])  # the largest loss is at the top

    def test_the_losses_of_the_test_set_are_drawn(self):
        ((first, last),) = self.lines(self.drawn(9)["Test loss"])
        self.assertLess(first[0], last[0])
        self.assertLess(first[1], last[1])  # 3 is above 1.5

    def test_what_is_not_known_is_not_drawn(self):
        lines = list(metrics(4, epochs=1))
        lines[2]["loss"] = lines[2]["grad_norm"] = None  # an update that was skipped
        lines[-1]["accuracy"] = lines[-1]["test_loss"] = None
        figures = self.draw([self.write("skipped.jsonl", lines)])
        for word in ("NaN", "undefined", "null", "Infinity"):
            self.assertNotIn(word, self.text)
        self.assertEqual(len(self.lines(figures["Loss"])[0]), 3)

    def test_runs_are_drawn_over_each_other(self):
        runs = [self.write("one.jsonl", metrics(4)), self.at / "two"]
        self.write("two/metrics.jsonl", [*metrics(3), *metrics(2)])
        loss = self.draw(runs)["Loss"]
        self.assertEqual([len(line) for line in self.lines(loss)], [4, 3, 2])
        self.assertEqual([line.get("class") for line in loss.iter("polyline")],
                         ["line c0", "line c1", "line c2"])

    def test_a_single_point_is_a_dot(self):
        figures = self.drawn(1, epochs=1)
        for title in FIGURES:
            self.assertEqual(len(list(figures[title].iter("circle"))), 1)

    # ---- Ticks

    def test_ticks_stand_at_their_values(self):
        figure = self.drawn(9)["Samples a second"]  # 1001 to 1009
        (rate,) = self.lines(figure)
        ticks = [(float(text.text), float(text.get("y")) - 4) for text in figure.iter("text")
                 if text.get("class") == "end" and text.text != "update"]
        self.assertEqual([value for value, _ in ticks], [1002, 1004, 1006, 1008])
        for value, y in ticks:
            share = (value - 1001) / 8
            self.assertAlmostEqual(y, rate[0][1] + (rate[-1][1] - rate[0][1]) * share, delta=0.02)

    def ticks_across(self, epochs):
        figures = self.drawn(2, epochs=epochs)
        self.assertEqual(texts_of(figures["Test loss"], "end")[-1], "epoch")
        return texts_of(figures["Test loss"], "mid")

    def test_epochs_are_whole(self):
        self.assertEqual(self.ticks_across(1), ["1"])
        self.assertEqual(self.ticks_across(2), ["1", "2"])
        self.assertEqual(self.ticks_across(3), ["1", "2", "3"])
        self.assertEqual(self.ticks_across(11), ["2", "4", "6", "8", "10"])

    def test_axes_of_one_value_end_where_values_do(self):
        most = {"Test accuracy": 1}
        for value in (0, 0.93, 1):
            figures = self.draw([self.write("run.jsonl", [
                {"step": 1, "loss": value, "lr": value, "grad_norm": value,
                 "samples_per_s": value},
                {"after_epoch": 1, "accuracy": value, "test_loss": value}])])
            for title in FIGURES:
                ticks = [float(text) for text in texts_of(figures[title], "end")[:-1]]
                self.assertGreaterEqual(min(ticks), 0, title)
                self.assertLessEqual(max(ticks), most.get(title, 1.5), title)
                self.assertGreater(len(ticks), 2, title)
                self.assertEqual(texts_of(figures[title], "mid"), ["1"])

    def ticks_up(self, *rates):
        """Of the charts of rates and of learning rates, which are theirs in hundred millions."""
        lines = [{"step": step, "samples_per_s": rate, "lr": rate / 1e8}
                 for step, rate in enumerate(rates, 1)]
        figures = self.draw([self.write("run.jsonl", lines)])
        return [texts_of(figures[title], "end")[:-1]
                for title in ("Samples a second", "Learning rate")]

    def test_ticks_are_read_at_a_glance(self):
        self.assertEqual(self.ticks_up(100e3, 200e3),
                         [["100k", "120k", "140k", "160k", "180k", "200k"],
                          ["0.0010", "0.0012", "0.0014", "0.0016", "0.0018", "0.0020"]])
        self.assertEqual(self.ticks_up(0, 2000), [
            ["0", "500", "1000", "1500", "2000"], ["0", "5e-6", "1e-5", "1.5e-5", "2e-5"]])
        self.assertEqual(self.ticks_up(0, 2.4e6)[0], ["0", "0.5M", "1.0M", "1.5M", "2.0M"])
        self.assertEqual(self.ticks_up(120000, 120010)[0],
                         ["120.000k", "120.002k", "120.004k", "120.006k", "120.008k", "120.010k"])

    def test_numbers_that_no_step_tells_apart_end(self):
        self.ticks_up(5e-324, 1e-323)
        self.ticks_up(-1e299, 1e299)
        self.ticks_up(1e15, 1e15 + 0.125)
        for word in ("NaN", "undefined", "Infinity"):
            self.assertNotIn(word, self.text)

    # ---- The pointer

    def test_the_pointer_shows_the_values_of_all_runs(self):
        one = self.write("one<.jsonl", metrics(9))
        two = self.write("two.jsonl", [{**line, "samples_per_s": 123456} for line in metrics(5)])
        across = (WIDTH - RIGHT - LEFT) / 8
        self.draw([one, two], [(0, LEFT + 2.2 * across), (0, LEFT + 6.6 * across),
                               (5, LEFT + 2 * across), (2, LEFT)])
        tips = [re.sub(r"<[^>]*>|\s+", " ", tip).split() for tip in self.shown["tips"]]
        self.assertEqual(tips[0], ["update", "3", "one&#60;.jsonl:", "0.3333", "two.jsonl:",
                                   "0.3333"])
        self.assertEqual(tips[1], ["update", "8", "one&#60;.jsonl:", "0.125"])  # two has ended
        self.assertEqual(tips[2][2:], ["one&#60;.jsonl:", "1003", "two.jsonl:", "123.5k"])
        self.assertEqual(tips[3][:4], ["epoch", "1", "one&#60;.jsonl:", "3"])
        self.assertEqual([marks.count("<circle") for marks in self.shown["marks"]], [2, 1, 2, 2])
        self.assertTrue(self.shown["hidden"])  # when the pointer has left

    def test_nothing_is_shown_where_nothing_is_drawn(self):
        self.draw([self.write("start.jsonl", list(metrics(1))[:1])], [(0, 300)])
        self.assertEqual(self.shown["tips"], [None])

    def test_a_swatch_stays_with_its_word(self):
        self.drawn(2)
        keys = [key for key in self.root.iter("span") if key.get("class") == "key"]
        self.assertEqual(["".join(key.itertext()) for key in keys][:9], PARTS)
        self.assertEqual([key[0].get("class") for key in keys[:9]], [f"c{i}" for i in range(9)])
        self.assertRegex((self.at / "report.html").read_text(), r"\.key \{ white-space: nowrap")

    # ---- Bars

    def tips(self, figure):
        return [rect.get("data-tip") for rect in figure.iter("rect")]

    def test_bars_are_as_wide_as_their_parts(self):
        figures = self.drawn(3, epochs=1)
        times = figures["Time of updates on rank 0, by part"]
        widths = [float(rect.get("width")) for rect in times.iter("rect")]
        for width, seconds in zip(widths, range(1, 10), strict=True):
            self.assertAlmostEqual(width, sum(widths) * seconds / 45, delta=0.03)
        self.assertEqual(self.tips(times), [f"epoch 1, {part}: {seconds} s"
                                            for seconds, part in enumerate(PARTS, 1)])
        self.assertEqual(texts_of(times)[1], "45 s")
        self.assertEqual(self.tips(figures["Memory of each rank"])[0],
                         "rank 0, parameters: 3 MiB")
        self.assertIn("62.5 % of the reduction was hidden", self.text)

    def test_all_ranks_have_a_bar_of_memory(self):
        memory = self.drawn(1, ranks=70)["Memory of each rank"]
        self.assertEqual(texts_of(memory, "end"), [f"rank {rank}" for rank in range(70)])
        self.assertNotIn("are drawn", self.text)

    def test_epochs_and_runs_that_are_not_drawn_are_told(self):
        lines = [line for _ in range(33) for line in metrics(1, epochs=70)]
        figures = self.draw([self.write("run.jsonl", lines)])
        names = texts_of(figures["Time of updates on rank 0, by part"], "end")
        self.assertEqual((len(names), names[-1]), (32, "epoch 70"))
        self.assertIn("<p>32 of 70 epochs are drawn.</p>", self.text)
        self.assertIn("<p>32 of 33 runs are drawn.</p>", self.text)
        self.assertEqual(len(self.lines(figures["Loss"])), 32)

    def test_tables_are_the_metrics(self):
        self.drawn(2)
        rows = [["".join(cell.itertext()) for cell in row] for row in self.root.iter("tr")]
        self.assertIn(["optimizer.type", "SGD<&>"], rows)
        self.assertIn(["1", "10.0", "20.0", "50 %"], rows)

    # ---- Pipelines

    def test_a_pipeline_is_drawn_beside_its_schedule(self):
        figures = self.draw([self.write("run.jsonl", [*metrics(2), PIPELINE])])
        measured = figures["Pipeline as it ran, update 2"]
        counted = figures["Pipeline with passes of equal length"]
        for figure, rows, unit in ((measured, PIPELINE["pipeline"]["measured"], 440 / 0.010),
                                   (counted, SLOTS, 440 / 6)):
            want = [(begin, end) for row in rows for micro in row
                    for begin, end in (micro[:2], micro[2:])]
            rects = list(figure.iter("rect"))
            self.assertEqual([rect.get("class") for rect in rects], ["c0", "c1"] * 4)
            for rect, (begin, end) in zip(rects, want, strict=True):
                self.assertAlmostEqual(float(rect.get("x")), 90 + begin * unit, delta=0.01)
                self.assertAlmostEqual(float(rect.get("width")), (end - begin) * unit, delta=0.01)
            tops = [float(rect.get("y")) for rect in rects]
            self.assertEqual([top - tops[0] for top in tops], [0] * 4 + [22] * 4)
        self.assertEqual(self.tips(measured)[1], "backward 0: 3 ms from 4 on")
        self.assertEqual([text for text in texts_of(measured) if text.startswith("busy")],
                         ["busy 80.0 %", "busy 40.0 %"])
        self.assertIn("idle 33.3 % of 6 slots", self.text)
        self.assertIn("p = 2 stages and m = 2 micro-batches", self.text)

    def test_a_pipeline_that_is_none_is_not_drawn(self):
        whole = PIPELINE["pipeline"]
        measured = [[[0, 1, "2", 3]]], [[[1, 0, 2, 3]]], [[[0, 1e300, 2, 3]]], [[[0, 0, 0, 0]]], [
            [[0, 1, 2, 3, 4]]], [[[0, 1]]], [[]], [], 1
        predicted = [[1, 2]], [[[-1, 2]]], [[[]]], None
        wrong = [{}, 1, [], *({**whole, "measured": numbers} for numbers in measured),
                 *({**whole, "predicted": numbers} for numbers in predicted)]
        lines = [line for pipeline in wrong for line in [*metrics(1), {"pipeline": pipeline}]]
        figures = self.draw([self.write("run.jsonl", lines)])
        self.assertEqual(len(list(self.root.iter("h2"))), len(wrong))
        self.assertFalse([title for title in figures if "Pipeline" in title])

    def test_facts_that_are_none_are_not_drawn(self):
        for run in (None, 1, "a", [], {"memory": {"a": 1}, "config": [1, "a"]},
                    {"memory": [None, 3, "a"], "config": {"a": 1, "__proto__": "b"}}):
            lines = [{"run": run}, {"after_step": 1, "devices": [None, {"peak": "a"}]}]
            self.draw([self.write("run.jsonl", lines)])
            self.assertIn("Settings", self.text)


if __name__ == "__main__":
    if NODE is None:
        print("SKIPPED: node is not here to run the page's script")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
