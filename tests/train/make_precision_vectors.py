# SPDX-License-Identifier: Apache-2.0
"""Writes vectors/precision.txt: the scales of DeepSpeed's loss scaler after scripted overflows, and
what PyTorch computes with 16-bit parameters and gradients, for test_precision.c.

    pip install torch==2.15.0 numpy
    pip download --no-deps --no-binary :all: deepspeed==0.13.0  # and deepspeed==0.19.8
    python3 make_precision_vectors.py OLD/deepspeed NEW/deepspeed > vectors/precision.txt

OLD and NEW are the unpacked archives. Of DeepSpeed only runtime/fp16/loss_scaler.py is run.
"""
import importlib.util
import logging
import random
import sys
import types

import torch
from torch.utils.data.distributed import DistributedSampler

from make_vectors import loss_of, network, table, title

torch.set_num_threads(1)
SAMPLES, BATCH, EPOCHS = 320, 32, 6


def stub(name, **members):
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module
    return module


def load_scaler(folder, name):
    comm = types.SimpleNamespace(get_rank=lambda: 1)
    stub("deepspeed", comm=comm)
    stub("deepspeed.runtime")
    stub("deepspeed.runtime.config_utils", DeepSpeedConfigObject=object)
    stub("deepspeed.runtime.utils", has_inf_or_nan=None)
    stub("deepspeed.utils", logger=logging.getLogger(), log_dist=None)
    spec = importlib.util.spec_from_file_location(name, f"{folder}/runtime/fp16/loss_scaler.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.DynamicLossScaler


def make_scaler(scaler, power, window, hysteresis, consecutive, least):
    return scaler(init_scale=2**power, scale_window=window, min_scale=least,
                  delayed_shift=hysteresis, consecutive_hysteresis=consecutive)


def scripts():
    """Overflows (1) as they come by chance, in a row, and hardly ever."""
    chance = random.Random(5)
    for share in (0.5, 0.25, 0.08):
        yield "".join("1" if chance.random() < share else "0" for _ in range(48))
    yield "1" * 12
    yield "0" * 24
    yield "110" * 8 + "0" * 12


def scaler_vectors(old, new):
    print("""\
# Whether the scaler is the old one, the scale's first power of two, window, hysteresis, whether
# that is consecutive, the least scale; the script, whose 1 is an overflow; how many updates it
# takes before the scaler gives up, and the scales after each.""")
    settings = [(16, 1000, 2, False, 1), (16, 4, 2, False, 1), (8, 3, 1, False, 1),
                (8, 2, 3, False, 3), (6, 3, 2, True, 1), (4, 1, 4, True, 2),
                (10, 5, 2, False, 1024)]
    for is_old, scaler in ((True, old), (False, new)):
        for setting in settings:
            for script in scripts():
                state, scales = make_scaler(scaler, *setting), []
                for update in script:
                    try:
                        state.update_scale(update == "1")
                    except Exception:  # DeepSpeed's own way to give up
                        break
                    scales.append(float(state.cur_scale))
                table("scaler", [int(is_old), *map(int, setting), script, len(scales)] +
                      [f"{s:.17g}" for s in scales], "{}")


def batches():
    for epoch in range(EPOCHS):
        sampler = DistributedSampler(range(SAMPLES), num_replicas=1, rank=0, seed=0)
        sampler.set_epoch(epoch)
        order = list(sampler)
        yield from (order[i:i + BATCH] for i in range(0, SAMPLES, BATCH))


def rounded(tensor, kind):
    return tensor.to(kind).float()


def gradients(model, images, labels, rows, micro, kind, scale):
    """Rounded after each micro-batch, summed in float32 and rounded again. @return loss, them."""
    total, sums = 0.0, None
    for at in range(0, len(rows), micro):
        some = rows[at:at + micro]
        model.zero_grad()
        loss = loss_of("cross_entropy", model(images[some]), labels[some]) * len(some) / len(rows)
        (loss * scale).backward()
        total += loss.item()
        grads = [p.grad.clone() for p in model.parameters()]
        sums = [rounded(g if s is None else s + g, kind)
                for g, s in zip(grads, sums or [None] * len(grads))]
    return total, sums


def train(name, kind, micro, clip, make, scaler):
    """Parameters and gradients are kept in @p kind, masters in float32."""
    torch.manual_seed(11)
    images = torch.empty(SAMPLES * 784).uniform_(0, 256).to(torch.uint8)
    labels = torch.empty(SAMPLES).uniform_(0, 10).to(torch.int64)
    images = images.reshape(SAMPLES, 784).float() / 255
    model = network([784, 256, 64, 10], 1)
    masters = [p.detach().clone() for p in model.parameters()]
    optimizer = make(masters)
    losses, norms, scales = [], [], []
    for rows in batches():
        with torch.no_grad():
            for p, master in zip(model.parameters(), masters):
                p.copy_(rounded(master, kind))
        scale = scaler.cur_scale if scaler else 1.0
        loss, grads = gradients(model, images, labels, rows, micro, kind, scale)
        norm = sum(g.double().square().sum().item() for g in grads)**0.5 / scale
        finite = norm < float("inf")
        if scaler:
            scaler.update_scale(not finite)
        if finite:
            factor = min(1.0, clip / (norm + 1e-6)) if clip else 1.0
            for master, g in zip(masters, grads):
                master.grad = g * (factor / scale)
            optimizer.step()
        losses.append(loss)
        norms.append(norm if finite else 0.0)
        scales.append(scale)
    table(f"{name}_losses", losses)
    print("# 0: not finite, the update is left out.")
    table(f"{name}_norms", norms)
    table(f"{name}_scales", scales)


def main():
    old, new = (load_scaler(folder, f"scaler{i}") for i, folder in enumerate(sys.argv[1:3]))
    title("make_precision_vectors.py")
    scaler_vectors(old, new)
    train("fp16", torch.float16, BATCH, 0.5, lambda p: torch.optim.AdamW(p, lr=1e-3),
          make_scaler(new, 22, 6, 2, False, 1))
    train("bf16", torch.bfloat16, BATCH // 2, 0.0,
          lambda p: torch.optim.SGD(p, lr=0.01), None)


if __name__ == "__main__":
    main()
