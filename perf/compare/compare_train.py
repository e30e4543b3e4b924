#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ringtrain beside PyTorch DDP over Gloo: MNIST MLP, Adam, batch 64 a rank, one thread a rank.

    compare_train.py --data DIR [--build build] [--python PYTHON_WITH_TORCH] [--rounds 5]

The two run in turn; medians and the ratio of medians are printed. Both make the same number of
steps, and throughput is that of those after the warm-up. Each rank of both stays on a core of its
own, one rank alone too, unless there are more ranks than cores: then all are left free. Start-up
is process start to the end of the first step; for ringtrain the whole life of a run of one step,
evaluation and exit included, so the ratio is a lower bound.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

WARMUP, STEPS = 300, 1500  # not counted, counted


def run(command, **variables):
    env = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", **variables)
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def ours(args, ranks, steps):
    """What ringtrain noted of each step, and the seconds of the whole run."""
    with tempfile.TemporaryDirectory() as folder:
        metrics = os.path.join(folder, "metrics.jsonl")
        # "auto" binds several ranks if they fit, but never one alone. An epoch has at least one
        # step, so that this many epochs never end a run before --max-steps does.
        command = [f"{args.build}/bin/ringrun", "-n", str(ranks),
                   "--bind-to", "core" if ranks == 1 else "auto", f"{args.build}/bin/ringtrain",
                   "--deepspeed_config", args.config, "--data", args.data, "--loss",
                   "cross_entropy", "--epochs", str(steps), "--max-steps", str(steps),
                   "--metrics", metrics]
        started = time.time()
        run(command)
        seconds = time.time() - started
        with open(metrics) as file:
            lines = [json.loads(line) for line in file]
    if len(lines) != steps:
        sys.exit(f"ringtrain noted {len(lines)} steps of {steps}: no comparison")
    return lines, seconds


def our_rate(args, ranks):
    """Samples a second over the steps after the warm-up, from each step's own rate."""
    lines, _ = ours(args, ranks, WARMUP + STEPS)
    return STEPS / sum(1 / line["samples_per_s"] for line in lines[WARMUP:])


def theirs(args, ranks):
    out = run([args.python, "-m", "torch.distributed.run", "--standalone",
               f"--nproc-per-node={ranks}", os.path.join(os.path.dirname(__file__), "ddp_mnist.py"),
               "--data", args.data, "--warmup", str(WARMUP), "--steps", str(STEPS)],
              BENCH_STARTED=str(time.time()))
    return json.loads(out.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--config", default="docs/examples/mnist/adam.json")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    args = parser.parse_args()
    rows = []
    for ranks in (1, 2):
        samples = {"ours": [], "ddp": [], "ours_first": [], "ddp_first": []}
        for _ in range(args.rounds):
            samples["ours"].append(our_rate(args, ranks))
            samples["ours_first"].append(ours(args, ranks, 1)[1])
            peer = theirs(args, ranks)
            samples["ddp"].append(peer["samples_per_s"])
            samples["ddp_first"].append(peer["first_step_s"])
        middle = {name: statistics.median(values) for name, values in samples.items()}
        rows.append(dict(middle, ranks=ranks))
        print(f"{ranks} ranks: ringtrain {middle['ours']:.0f} samples/s, "
              f"DDP over Gloo {middle['ddp']:.0f}: ratio {middle['ours'] / middle['ddp']:.2f}; "
              f"first step after {middle['ours_first']:.2f} s and {middle['ddp_first']:.2f} s: "
              f"ratio {middle['ddp_first'] / middle['ours_first']:.1f}", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)


main()
