# SPDX-License-Identifier: Apache-2.0
"""Stage T of tests/gpu: ringtrain on a GPU. Its ops and losses are compared with the host's, then
updates are counted per second, beside PyTorch's."""

import json
import re
import sys
import tempfile
from pathlib import Path

from programs import figures_of, run_program

HERE = Path(__file__).resolve().parent
BATCH = 64
MOST_APART = 1e-6  # relative, a loss from the host's
# The configuration of a DeepSpeed user's run with MNIST (docs/examples/mnist/deeps.json).
WARMED_SGD = {
    "train_micro_batch_size_per_gpu": BATCH,
    "optimizer": {"type": "SGD", "params": {"lr": 0.01}},
    "scheduler": {"type": "WarmupDecayLR",
                  "params": {"total_num_steps": 9000, "warmup_min_lr": 1e-4, "warmup_max_lr": 0.1,
                             "warmup_num_steps": 1000, "warmup_type": "linear"}}}
# LeNet-5's losses fall within 100 updates. With Adam two libraries of the host differ by 1 %.
SGD = {"train_micro_batch_size_per_gpu": BATCH,
       "optimizer": {"type": "SGD", "params": {"lr": 0.03, "momentum": 0.9}}}
ADAM = {"train_micro_batch_size_per_gpu": BATCH,
        "optimizer": {"type": "Adam", "params": {"lr": 0.001}}}
# A network's name, configuration and loss; updates per second of PyTorch's CUDA graph on an H100.
NETWORKS = {"MLP": ("mlp", WARMED_SGD, "mse", 7100),
            "LeNet-5": ("lenet5", SGD, "cross_entropy", 3228)}


def command(amount, folder, config, network, loss, *options):
    path = folder / "config.json"
    path.write_text(json.dumps({**config, "steps_per_print": 1000000}))
    return [amount.program("ringtrain"), "--deepspeed_config", path, "--data", folder / "digits",
            "--model", network, "--loss", loss, "--eval-every", 0, *options]


def train(stage, amount, folder, name, device, updates):
    """@return the losses and the bytes of the parameters; both are empty if it failed."""
    metrics, params = folder / "metrics.jsonl", folder / "params"
    network, config, loss, _ = NETWORKS[name]
    outcome = stage.program(
        f"{name}: {updates} updates on {device}",
        command(amount, folder, config, network, loss, "--max-steps", updates, "--device",
                device, "--metrics", metrics, "--dump-params", params))
    if outcome is None or outcome.word != "ok":
        return [], b""
    rows = map(json.loads, metrics.read_text().splitlines())
    metrics.unlink()  # ringtrain does not overwrite it
    return ([row["loss"] for row in rows if "step" in row], Path(f"{params}.0").read_bytes())


def compare(stage, amount, folder, name, updates):
    host, first, again = (train(stage, amount, folder, name, device, updates)
                          for device in ("cpu", "cuda", "cuda"))
    if not len(host[0]) == len(first[0]) == updates:
        stage.row(f"{name}: losses", "FAILED: some are missing", good=False)
        return
    apart = max(abs(a - b) / abs(b) for a, b in zip(first[0], host[0]))
    stage.row(f"{name}: {updates} losses, most apart from the host's", apart,
              good=apart <= MOST_APART)
    same = first == again
    stage.row(f"{name}: a second run has the same bits", "ok" if same else "FAILED", good=same)


def measure(stage, amount, folder, samples):
    rates = {}
    for name, (network, *_) in NETWORKS.items():
        outcome = stage.program(f"{name}: epochs with Adam", command(
            amount, folder, ADAM, network, "cross_entropy", "--epochs", amount(6, 2), "--device",
            "cuda"))
        lines = [] if outcome is None else outcome.lines
        found = re.findall(r"^epoch .*?(\d+) samples/s", "\n".join(lines), re.MULTILINE)
        if len(found) > 1:  # the first epoch chooses algorithms
            updates = -(-samples // BATCH)
            rates[name] = max(map(float, found[1:])) * updates / samples
            stage.row(f"{name}: updates", rates[name], "per second")
        elif outcome is not None and outcome.good:
            stage.row(f"{name}: updates", "FAILED: no rate is printed", good=False)
    torch = figures_of(stage.command("PyTorch beside it", [sys.executable, HERE /
                                                           "torch_beside.py", "trainer"],
                                     may_skip=True, limit=3 * stage.limit))
    for name, (value, unit) in torch.items():
        stage.row(f"{name}: updates of PyTorch in a CUDA graph", value, unit)
    for name, rate in rates.items():
        where, base = ("", torch[name][0]) if name in torch else (" on an H100", NETWORKS[name][-1])
        stage.row(f"{name}: updates, share of PyTorch's CUDA graph{where}", rate / base)


def stage_t(stage, amount):
    samples = amount(60000, BATCH)
    with tempfile.TemporaryDirectory(prefix="trainer-") as made:
        folder = Path(made)
        stage.program("data set of digits", [stage.launcher.with_name("ringdigits"),
                                             folder / "digits", "--train", samples, "--test", 64])
        argv = command(amount, folder, ADAM, "mlp", "mse", "--max-steps", 1, "--device", "cuda")
        tried = run_program([stage.folder / argv[0], *argv[1:]], stage.limit, stage.env, False)
        missing = [line for line in tried.lines if "cuBLASLt" in line and "not found" in line]
        if missing:  # it belongs to the CUDA Toolkit or a wheel, not to the driver
            stage.row("the trainer on a GPU", "skipped: " + missing[0])
            return
        stage.program("ops of networks on the host", ["gpu_ops"])
        stage.program("ops of networks on the GPU", ["gpu_ops", "cuda"])
        if amount.is_real or amount.factor > 1:
            stage.program("training in the engine", ["gpu_training"], limit=2 * stage.limit)
        for name, updates in (("MLP", amount(100, 8)), ("LeNet-5", amount(100, 2))):
            compare(stage, amount, folder, name, updates)
        measure(stage, amount, folder, samples)
