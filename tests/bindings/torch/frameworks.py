#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frameworks over torch.distributed train one tiny model over Gloo and over ring: equal losses.

Each framework runs twice under torchrun with 2 processes on this machine, first over Gloo, then
over ring, with the lines that docs/pytorch.md gives for it. Both runs start from one seed; their
losses of each step on each rank must agree within a relative 1e-6. A framework that is not
installed is skipped, with the reason in the table.

    frameworks.py [FRAMEWORK]...    (deepspeed lightning fabric accelerate trainer; all of them)

Exit status 1 if losses differ or a run fails, 77 if no framework is installed.
"""

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS, BATCH, WIDTH, RANKS = 20, 8, 32, 2
BOUND = 1e-6
SECONDS = 200  # of one run, imports included
GLOO, RING = "gloo", "ring"


def make_data():
    """A regression that a small network can learn; the same on every rank."""
    import torch
    torch.manual_seed(1)
    inputs = torch.randn(RANKS * STEPS * BATCH, WIDTH)
    targets = torch.tanh(inputs @ torch.randn(WIDTH, 1) / 4)
    return torch.utils.data.TensorDataset(inputs, targets)


def make_loader():
    import torch
    return torch.utils.data.DataLoader(make_data(), BATCH)


def make_model():
    import torch
    torch.manual_seed(2)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 64), torch.nn.Tanh(),
                               torch.nn.Linear(64, 1))


def loss_of(model, batch):
    import torch
    return torch.nn.functional.mse_loss(model(batch[0]), batch[1])


def shard_loader():
    """The batches of this rank, for frameworks that leave the sharding to their user."""
    from torch.utils.data import DataLoader, DistributedSampler
    data = make_data()
    return DataLoader(data, BATCH, sampler=DistributedSampler(data, shuffle=False))


def plain_loop(model, optimizer, loader, backward):
    """PyTorch's loop, with the framework's backward. @return the losses"""
    losses = []
    for batch in loader:
        loss = loss_of(model, batch)
        optimizer.zero_grad()
        backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


def run_deepspeed(backend, _):
    """ZeRO-2 with the optimizer's states and the gradients sharded."""
    import deepspeed
    deepspeed.init_distributed(dist_backend=backend)
    model = make_model()
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
        "train_micro_batch_size_per_gpu": BATCH,
        "optimizer": {"type": "Adam", "params": {"lr": 1e-2, "torch_adam": True}},
        "zero_optimization": {"stage": 2}})
    losses = []
    for batch in shard_loader():
        loss = loss_of(engine, batch)
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    return losses


def run_lightning(backend, folder):
    import lightning
    import torch
    from lightning.pytorch.strategies import DDPStrategy
    losses = []

    class Module(lightning.LightningModule):
        """The model, its loss and its optimizer."""

        def __init__(self):
            super().__init__()
            self.model = make_model()

        def training_step(self, batch, _):
            loss = loss_of(self.model, batch)
            losses.append(loss.item())
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-2)

    trainer = lightning.Trainer(
        accelerator="cpu", devices=RANKS, strategy=DDPStrategy(process_group_backend=backend),
        max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=folder)
    trainer.fit(Module(), make_loader())
    return losses


def run_fabric(backend, _):
    import torch
    from lightning.fabric import Fabric
    from lightning.fabric.strategies import DDPStrategy
    fabric = Fabric(accelerator="cpu", devices=RANKS,
                    strategy=DDPStrategy(process_group_backend=backend))
    fabric.launch()
    model = make_model()
    model, optimizer = fabric.setup(model, torch.optim.Adam(model.parameters(), 1e-2))
    return plain_loop(model, optimizer, fabric.setup_dataloaders(make_loader()),
                      fabric.backward)


def run_accelerate(backend, _):
    """accelerate chooses Gloo for a CPU, but keeps a group that is there already."""
    import torch
    from accelerate import Accelerator
    torch.distributed.init_process_group(backend)
    accelerator = Accelerator(cpu=True)
    model = make_model()
    model, optimizer, loader = accelerator.prepare(
        model, torch.optim.Adam(model.parameters(), 1e-2), make_loader())
    return plain_loop(model, optimizer, loader, accelerator.backward)


def make_language_model():
    """A GPT-2 of two small layers, and rows of tokens that count upwards."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(2)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2,
                                       n_head=2))
    rows = [torch.arange(first, first + 16) % 64 for first in range(RANKS * STEPS * BATCH)]
    return model, [{"input_ids": row, "labels": row} for row in rows]


def run_trainer(backend, folder):
    """Hugging Face's Trainer stands on accelerate, so the group must be there first, too."""
    import torch
    from transformers import Trainer, TrainingArguments
    torch.distributed.init_process_group(backend)
    model, rows = make_language_model()
    trainer = Trainer(model=model, train_dataset=rows, args=TrainingArguments(
        output_dir=folder, use_cpu=True, per_device_train_batch_size=BATCH, num_train_epochs=1,
        learning_rate=1e-3, logging_steps=1, save_strategy="no", report_to="none",
        disable_tqdm=True, dataloader_drop_last=True))
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


# name: (the function, the package whose version the table gives)
FRAMEWORKS = {
    "deepspeed": (run_deepspeed, "deepspeed"),
    "lightning": (run_lightning, "lightning"),
    "fabric": (run_fabric, "lightning"),
    "accelerate": (run_accelerate, "accelerate"),
    "trainer": (run_trainer, "transformers"),
}


def run_child(name, backend, folder):
    """One rank under torchrun: train, write the losses and over what, leave when all have."""
    import torch.distributed as dist
    losses = FRAMEWORKS[name][0](backend, folder)
    result = {"backend": dist.get_backend(), "losses": losses}
    Path(folder, f"{backend}.{dist.get_rank()}.json").write_text(json.dumps(result),
                                                                 encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


def results_of(backend, folder):
    """The results of the ranks; fewer if some failed earlier."""
    paths = [Path(folder, f"{backend}.{rank}.json") for rank in range(RANKS)]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def train(name, backend, folder):
    """Losses of all ranks of one run; raises if it fails. Processes with a Gloo group abort at
    their end now and then ("terminate called without an active exception"): with all losses
    written that is no matter here. Over ring the end counts."""
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone",
               f"--nproc-per-node={RANKS}", "--log-dir", folder, __file__, "--child", backend,
               "--folder", folder, name]
    environment = dict(os.environ, OMP_NUM_THREADS="1", DS_ACCELERATOR="cpu",
                       CUDA_VISIBLE_DEVICES="", TOKENIZERS_PARALLELISM="false")
    with open(Path(folder, f"{backend}.log"), "w+", encoding="utf-8") as log:
        done = subprocess.run(command, env=environment, stdout=log, stderr=subprocess.STDOUT,
                              timeout=SECONDS, check=False)
        results = results_of(backend, folder)
        if len(results) < RANKS or (backend == RING and done.returncode):
            log.seek(0)
            raise RuntimeError(f"exit status {done.returncode} over {backend}:\n" + log.read())
    if any(result["backend"] != backend for result in results):
        raise RuntimeError(f"asked for {backend}, the group is {results[0]['backend']}")
    return [loss for result in results for loss in result["losses"]]


def greatest_difference(ours, theirs):
    if len(ours) != len(theirs) or len(ours) < STEPS:
        raise RuntimeError(f"{len(ours)} losses over ring, {len(theirs)} over Gloo")
    return max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))


def compare(name):
    """(outcome, text for the table) of one framework."""
    package = FRAMEWORKS[name][1]
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "skipped", f"{package} is not installed"
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ring-frameworks-") as folder:
        try:
            theirs, ours = train(name, GLOO, folder), train(name, RING, folder)
            difference = greatest_difference(ours, theirs)
        except (RuntimeError, subprocess.TimeoutExpired) as why:
            return "FAILED", str(why)
    text = (f"{version}: loss {theirs[0]:.4f} to {theirs[STEPS - 1]:.4f}, relative "
            f"difference {difference:.1e}, {time.monotonic() - begin:.0f} s")
    return ("passed" if difference <= BOUND else "FAILED"), text


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", nargs="*", choices=[*FRAMEWORKS, []])
    parser.add_argument("--child", metavar="BACKEND", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return run_child(options.framework[0], options.child, options.folder)
    outcomes = []
    for name in options.framework or FRAMEWORKS:
        outcome, text = compare(name)
        outcomes.append(outcome)
        print(f"{name:10} {outcome:7} {text}", flush=True)
    if set(outcomes) == {"skipped"}:
        print("SKIPPED: none of the frameworks is installed")
    counts = {kind: outcomes.count(kind) for kind in ("passed", "FAILED", "skipped")}
    print(f"{counts['passed']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return 1 if counts["FAILED"] else 0 if counts["passed"] else 77


if __name__ == "__main__":
    sys.exit(main())
