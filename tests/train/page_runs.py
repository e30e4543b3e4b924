# SPDX-License-Identifier: Apache-2.0
"""Metrics as --metrics writes them, and the pages that ringtrain report makes of them."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RINGTRAIN = str(Path(sys.argv[1]).resolve() / "ringtrain")
PARTS = ["data", "forward", "backward", "step", "wait", "bubble_wait", "transfer",
         "reduce", "other"]
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


class PageCase(unittest.TestCase):
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

    def make(self, *runs):
        """@return the page as text."""
        done = self.report(*(run.relative_to(self.at) for run in runs))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^report\.html: a page of \d+ runs?\n$")
        return (self.at / "report.html").read_text(encoding="utf-8")
