#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ringtrain with PyTorch, DDP over Gloo, and DeepSpeed on the CPU: MNIST, Adam, batch 64
per rank, one thread per rank. Also compares it with only the matrix products of a step (ringlimit
products).

    compare_train.py --data DIR [--build build] [--python PYTHON_WITH_TORCH] [--rounds 5]
                     [--only REGEX]

In each round all contestants run one after the other; medians and ratios of medians are printed.
All make the same number of steps on the same unpacked files, and the steps after the warm-up count.
Each rank is bound to a core, a single rank, too; if there are more ranks than cores, no rank is
bound. No contestant uses the test set or clips gradients.

The first step is timed from process start to its end. For ringtrain it is the time of a whole run
of one step including exit, so the ratio is a lower bound. "Epoch 6" resumes from a checkpoint of
the end of epoch 5, when moments of Adam may have become subnormal. DeepSpeed takes part if its
package is installed; let it compile its operators in an earlier run.
"""
import argparse
import gzip
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

WARMUP, STEPS, BATCH = 300, 1500, 64  # steps that do not count, and steps that count
EARLY_EPOCHS = 5
HERE = os.path.dirname(os.path.abspath(__file__))


def run(command, **variables):
    env = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", **variables)
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def ringrun(args, ranks):
    """@return the command that starts ranks. "auto" never binds a single rank, so "core" does."""
    return [f"{args.build}/bin/ringrun", "-n", str(ranks),
            "--bind-to", "core" if ranks == 1 else "auto"]


class Ringtrain:
    def __init__(self, stage=0, late=False):
        self.name = "ringtrain" + (f" ZeRO-{stage}" if stage else "") + ", epoch 6" * late
        self.stage, self.late = stage, late

    def config(self, args, folder):
        with open(args.config) as file:
            config = json.load(file)
        config["gradient_clipping"] = 0
        if self.stage:
            config["zero_optimization"] = {"stage": self.stage}
        path = os.path.join(folder, "config.json")
        with open(path, "w") as file:
            json.dump(config, file)
        return path

    def command(self, args, model, ranks, folder):
        return ringrun(args, ranks) + [
            f"{args.build}/bin/ringtrain", "--deepspeed_config", self.config(args, folder),
            "--data", args.data, "--model", model, "--loss", "cross_entropy", "--eval-every", "0"]

    @staticmethod
    def early(args, model, ranks):
        return os.path.join(args.folder, f"{model}.{ranks}")

    def train_early(self, args, command, model, ranks):
        """Writes a checkpoint, if there is none yet. @return the number of its steps."""
        path = self.early(args, model, ranks)
        if not os.path.exists(path):
            run(command + ["--epochs", str(EARLY_EPOCHS), "--save", path])
        with open(os.path.join(path, "latest")) as file:
            return int(re.search(r"\d+", file.read()).group())

    def steps(self, args, model, ranks, steps):
        """@return ringtrain's record of each step, and the seconds of the whole run."""
        with tempfile.TemporaryDirectory() as folder:
            metrics = os.path.join(folder, "metrics.jsonl")
            command = self.command(args, model, ranks, folder)
            before = 0
            if self.late:
                before = self.train_early(args, command, model, ranks)
                command += ["--resume", self.early(args, model, ranks)]
            # An epoch has at least one step, so a run of so many epochs never ends too early.
            last = str(before + steps)
            started = time.time()
            run(command + ["--epochs", last, "--max-steps", last, "--metrics", metrics])
            seconds = time.time() - started
            with open(metrics) as file:
                lines = [line for line in map(json.loads, file) if "step" in line]
        if len(lines) != steps:
            sys.exit(f"cannot compare: ringtrain recorded {len(lines)} steps instead of {steps}")
        return lines, seconds

    def measure(self, args, model, ranks):
        lines, _ = self.steps(args, model, ranks, WARMUP + STEPS)
        rate = STEPS / sum(1 / line["samples_per_s"] for line in lines[WARMUP:])
        if self.late:
            return {"samples_per_s": rate}
        return {"samples_per_s": rate, "first_step_s": self.steps(args, model, ranks, 1)[1]}


class Torch:
    def __init__(self, engine, flushes=False):
        self.name = {"plain": "PyTorch", "ddp": "DDP over Gloo", "deepspeed": "DeepSpeed"}[engine]
        self.name += ", denormals flushed" if flushes else ""
        self.options = ["--engine", engine] + (["--flush-denormal"] if flushes else [])

    def measure(self, args, model, ranks):
        out = run([args.python, "-m", "torch.distributed.run", "--standalone",
                   f"--nproc-per-node={ranks}", f"{HERE}/torch_mnist.py", "--data", args.data,
                   "--model", model, "--batch", str(BATCH), "--warmup", str(WARMUP),
                   "--steps", str(STEPS), *self.options],
                  BENCH_STARTED=str(time.time()), DS_ACCELERATOR="cpu",
                  # DeepSpeed finds ninja in the folder of Python.
                  PATH=f"{os.path.dirname(args.python)}:{os.environ['PATH']}")
        return json.loads(out.strip().splitlines()[-1])


class Products:
    """The matrix products of a step; the rate is that of the slowest rank."""
    name = "its matrix products alone"

    def measure(self, args, model, ranks):
        out = run(ringrun(args, ranks) + [
            f"{args.build}/bin/ringlimit", "products", "--model", model, "--batch", str(BATCH),
            "--iters", str(STEPS)])
        slowest = max(map(float, re.findall(r" : ([\d.]+) us", out)))
        return {"samples_per_s": BATCH * ranks / slowest * 1e6}


CASES = {  # by model and ranks; ringtrain is the first contestant
    ("mlp", 1): [Ringtrain(), Products(), Ringtrain(late=True), Torch("plain"),
                 Torch("plain", True)],
    ("mlp", 2): [Ringtrain(), Products(), Ringtrain(1), Ringtrain(2), Torch("ddp"),
                 Torch("ddp", True), Torch("deepspeed"), Torch("deepspeed", True)],
    ("lenet5", 1): [Ringtrain(), Torch("plain"), Torch("plain", True)],
    ("lenet5", 2): [Ringtrain(), Torch("ddp"), Torch("ddp", True), Torch("deepspeed")],
}


def measure(args, case):
    """@return a dictionary of medians for each contestant of a case, ringtrain first."""
    model, ranks = case
    samples = [(contestant, {}) for contestant in CASES[case]
               if args.deepspeed or "DeepSpeed" not in contestant.name]
    for _ in range(args.rounds):
        for contestant, values in samples:
            for key, value in contestant.measure(args, model, ranks).items():
                values.setdefault(key, []).append(value)
    return [{"model": model, "ranks": ranks, "name": contestant.name} |
            {key: statistics.median(all) for key, all in values.items()}
            for contestant, values in samples]


def unpack(data, folder):
    """Copies the files of folder `data` to `folder`, decompressed. @return `folder`."""
    os.mkdir(folder)
    for name in os.listdir(data):
        opener = gzip.open if name.endswith(".gz") else open
        with opener(os.path.join(data, name), "rb") as packed, \
                open(os.path.join(folder, name.removesuffix(".gz")), "wb") as file:
            shutil.copyfileobj(packed, file)
    return folder


def show(rows):
    ours = rows[0]
    print(f"\n{ours['model']}, {ours['ranks']} rank{'s' * (ours['ranks'] > 1)}\n"
          f"{'':32} {'samples/s':>10} {'ringtrain is':>13} {'first step':>11}")
    for row in rows:
        first = f"{row['first_step_s']:9.2f} s" if "first_step_s" in row else ""
        print(f"{row['name']:32} {row['samples_per_s']:10.0f} "
              f"{ours['samples_per_s'] / row['samples_per_s']:11.2f} x {first:>11}", flush=True)


def has_deepspeed(python):
    return subprocess.run([python, "-c", "import importlib.util as u; "
                           "raise SystemExit(u.find_spec('deepspeed') is None)"]).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--config", default=f"{HERE}/../../docs/examples/mnist/adam.json")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="REGEX",
                        help="cases: mlp.1, mlp.2, lenet5.1, lenet5.2")
    parser.add_argument("--json")
    args = parser.parse_args()
    args.deepspeed = has_deepspeed(args.python)
    all_rows = []
    with tempfile.TemporaryDirectory() as args.folder:
        args.data = unpack(args.data, os.path.join(args.folder, "data"))
        for case in CASES:
            if re.search(args.only, f"{case[0]}.{case[1]}"):
                rows = measure(args, case)
                show(rows)
                all_rows += rows
    if args.json:
        with open(args.json, "w") as file:
            json.dump(all_rows, file, indent=1)


main()
