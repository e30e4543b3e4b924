#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ringtrain report: the page is well-formed, needs nothing else, and its numbers are the metrics'.

    test_page.py FOLDER_OF_PROGRAMS
"""

import json
import sys
import unittest
import xml.etree.ElementTree as ElementTree

from page_runs import MEMORY, PARTS, PIPELINE, PageCase, metrics

HTML = "{http://www.w3.org/1999/xhtml}"


def no_constant(word):
    raise ValueError(f"{word} in JSON")


class Page(PageCase):
    def page(self, *runs):
        self.text = self.make(*runs)
        return ElementTree.fromstring(self.text)

    def data(self, *runs):
        """The metrics as the script gets them."""
        (script,) = [element for element in self.page(*runs).iter(HTML + "script")
                     if element.get("id") == "runs"]
        return json.loads(script.text, parse_constant=no_constant)

    def rows(self, page):
        return [["".join(cell.itertext()) for cell in row] for row in page.iter(HTML + "tr")]

    def test_the_table_is_there_without_scripts(self):
        page = self.page(self.write("run.jsonl", metrics(9)))
        self.assertEqual(self.rows(page)[1],
                         ["run.jsonl", "a <b> & \"c\"", "42", "2", "7", "2026-01-31T12:00:00Z",
                          "9", "0.1111", "0.92", "1.5", "1005"])
        self.assertEqual(page.find(f".//{HTML}tr[2]/{HTML}td/{HTML}span").get("class"), "key")
        self.assertIn("this browser has\nnot run it", self.text)

    def test_numbers_are_the_metrics(self):
        (run,) = self.data(self.write("run.jsonl", [*metrics(9), PIPELINE]))
        steps, epochs = run["steps"], run["epochs"]
        self.assertEqual((run["name"], steps["rows"], epochs["rows"]), ("run.jsonl", 9, 2))
        self.assertEqual(steps["step"], list(range(1, 10)))
        for step, (loss, rate) in enumerate(zip(steps["loss"], steps["lr"], strict=True), 1):
            self.assertAlmostEqual(loss, 1 / step, delta=1e-12)
            self.assertAlmostEqual(rate, 0.001 * step, delta=1e-12)
        self.assertEqual(steps["grad_norm"], [2.5] * 9)
        self.assertEqual(steps["samples_per_s"], list(range(1001, 1010)))
        self.assertEqual(epochs["after_epoch"], [1, 2])
        self.assertEqual(epochs["accuracy"], [0.91, 0.92])
        self.assertEqual(epochs["test_loss"], [3, 1.5])
        self.assertEqual(epochs["overlap"], [0.625] * 2)
        self.assertEqual(epochs["seconds"], {part: [seconds] * 2
                                             for seconds, part in enumerate(PARTS, 1)})
        self.assertEqual(run["run"]["memory"], [MEMORY] * 2)
        self.assertEqual(run["run"]["config"], {"optimizer.type": "SGD<&>"})
        self.assertEqual(run["devices"], [{"resident": 10 << 20, "peak": 20 << 20, "cpu": 0.5}] * 2)
        self.assertEqual(run["pipeline"], PIPELINE["pipeline"])

    def test_what_is_not_known_is_null(self):
        lines = list(metrics(4, epochs=1))
        lines[2]["loss"] = lines[2]["grad_norm"] = None  # an update that was skipped
        lines[-1]["accuracy"] = lines[-1]["test_loss"] = None
        del lines[-1]["overlap"], lines[-1]["seconds"]["data"]
        path = self.write("skipped.jsonl", lines, end='{"step": 5, "loss": 1e999, "lr": -1e999}\n')
        (run,) = self.data(path)
        self.assertEqual(run["steps"]["loss"][1:], [None, 1 / 3, 0.25, None])
        self.assertEqual(run["steps"]["lr"][-1], None)
        self.assertEqual([run["epochs"][name] for name in ("accuracy", "test_loss", "overlap")],
                         [[None]] * 3)
        self.assertEqual(run["epochs"]["seconds"]["data"], [None])
        self.assertEqual(self.rows(self.page(path))[1][7:], ["", "", "", "1003"])

    def test_texts_end_neither_scripts_nor_cells(self):
        text = "</script><!--<script>]]>&amp;'\"\\\n\t\u2028\u001b\u00e9"
        name = "a<b>&'.jsonl"
        path = self.write(name, [{"run": {"model": text, "config": {text: text}}}, *metrics(1)])
        first, second = self.data(path)
        self.assertEqual(first["run"], {"model": text, "config": {text: text}})
        self.assertEqual([first["name"], second["name"]], [name] * 2)
        shown = "".join(letter for letter in text if letter >= " ")
        self.assertEqual(self.rows(self.page(path))[1][:2], [name, shown])
        self.assertEqual((self.text.count("<script"), self.text.count("</script")), (2, 2))

    def test_long_runs_are_thinned_and_keep_their_mean(self):
        (run,) = self.data(self.write("run.jsonl", metrics(4000, epochs=1000)))
        steps, epochs = run["steps"], run["epochs"]
        self.assertEqual((steps["rows"], epochs["rows"]), (4000, 1000))
        self.assertEqual({len(steps[name]) for name in ("step", "loss", "lr")}, {400})
        self.assertAlmostEqual(sum(steps["samples_per_s"]) / 400, 1000 + 4001 / 2, delta=1e-6)
        self.assertEqual(steps["step"][-1], 4000)
        self.assertTrue(all(step == int(step) for step in steps["step"]))
        self.assertEqual((len(epochs["after_epoch"]), epochs["after_epoch"][-1]), (400, 1000))
        for epoch, loss in zip(epochs["after_epoch"], epochs["test_loss"], strict=True):
            self.assertAlmostEqual(loss, 3 / epoch, delta=1e-12)  # of one epoch

    def test_runs_lie_behind_each_other(self):
        one = self.write("one.jsonl", metrics(4))
        self.write("two/metrics.jsonl", [*metrics(3), *metrics(2)])  # two runs in one file
        data = self.data(one, self.at / "two")
        self.assertEqual([run["steps"]["rows"] for run in data], [4, 3, 2])
        page = self.page(one, self.at / "two")
        self.assertEqual([row[6] for row in self.rows(page)[1:4]], ["4", "3", "2"])

    def test_the_latest_devices_and_pipeline_count(self):
        lines = [*metrics(1), {"after_step": 1, "devices": [{"peak": 1}]}, PIPELINE,
                 {"pipeline": {"step": 9}}]
        (run,) = self.data(self.write("run.jsonl", lines))
        self.assertEqual((run["devices"], run["pipeline"]), ([{"peak": 1}], {"step": 9}))

    def test_the_page_needs_nothing_else(self):
        page = self.page(self.write("run.jsonl", metrics(2)))
        tags = {element.tag.replace(HTML, "") for element in page.iter()}
        self.assertFalse(tags & {"link", "img", "iframe", "object"})
        self.assertFalse([element for element in page.iter() if element.get("src")])
        self.assertEqual(self.text.count("http"), 1)  # the name space
        for loader in ("fetch(", "XMLHttpRequest", "import", "url("):
            self.assertNotIn(loader, self.text)
        self.assertIn("prefers-color-scheme: dark", self.text)

    def test_what_a_killed_run_left_is_enough(self):
        killed = self.write("run.jsonl", list(metrics(3))[:3], end='{"step": 3, "ep')
        self.assertEqual(self.data(killed)[0]["steps"]["step"], [1, 2])
        page = self.page(self.write("old.jsonl", list(metrics(3))[1:2]))  # without the run's line
        self.assertEqual(self.rows(page)[1][6:10], ["1", "1", "", ""])
        (run,) = self.data(self.write("start.jsonl", list(metrics(3))[:1]))
        self.assertEqual((run["steps"]["loss"], run["epochs"]["accuracy"]), ([], []))

    def test_it_tells_what_it_has_written(self):
        self.write("one.jsonl", metrics(1))
        self.write("two.jsonl", [*metrics(1), *metrics(2)])
        for words, told in ((["one.jsonl"], "report.html: a page of 1 run\n"),
                            (["one.jsonl", "two.jsonl", "-o", "a.html"],
                             "a.html: a page of 3 runs\n")):
            self.assertEqual(self.report(*words).stdout, told)
            self.assertTrue((self.at / told.split(":")[0]).exists())
        done = self.report("one.jsonl", "-o", "none/a.html")
        self.assertEqual((done.returncode, done.stdout), (1, ""))

    def test_files_without_metrics_are_refused(self):
        (self.at / "text").write_text('{"step": 1}\nhello\n', encoding="utf-8")
        (self.at / "empty").write_text("", encoding="utf-8")
        for words, status, error in (
                (["text"], 1, "ringtrain report: text:2: the line is not a JSON object; give a "),
                (["empty"], 1, "ringtrain report: empty: the file has no metrics; give a file "),
                (["none"], 1, "ringtrain report: none: No such file or directory"),
                ([], 2, "ringtrain report: give at least one run")):
            done = self.report(*words)
            self.assertEqual(done.returncode, status)
            self.assertTrue(done.stderr.startswith(error), done.stderr)
            self.assertFalse((self.at / "report.html").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
