# SPDX-License-Identifier: Apache-2.0
"""Writes vectors/training.txt: what PyTorch computes, for the C tests to compare with.

    pip install torch==2.13.0 numpy
    python3 make_vectors.py [MNIST folder] > vectors/training.txt

Data are drawn from torch's generator, which train/base/random.c reproduces bit for bit, so
only results are stored.
"""
import gzip
import sys

import numpy
import torch
import torch.nn.functional as F
from torch.utils.data.distributed import DistributedSampler

torch.set_num_threads(1)


def title(script):
    print(f"# Written by {script} with PyTorch {torch.__version__.split('+')[0]}.")


def table(name, values, form="{:.9g}"):
    """An array or a row as vectors.c reads it. @param values  numbers, or texts with form "{}" """
    line = f"{name}:"
    for value in values:
        text = " " + form.format(value)
        if len(line) + len(text) > 99:
            print(line)
            line = " "
        line += text
    print(line)


def tables_of_adam(name, rate, picked_of, losses, moved, losses32, moved32):
    """Results in float64, and the largest difference of float32 from them: in a loss of the run,
    and in a parameter of each tensor."""
    table(f"{name}_adam_rate", [rate])
    table(f"{name}_adam_drift", [max(abs(a - b) for a, b in zip(losses, losses32))])
    table(f"{name}_adam_losses", losses, "{:.12g}")
    table(f"{name}_adam_moved", [v for m in moved for v in picked_of(m)])
    table(f"{name}_adam_drifts",
          [(a - b).abs().max().item() for a, b in zip(moved, moved32)])


def network(widths, seed):
    torch.manual_seed(seed)
    layers = []
    for i, (a, b) in enumerate(zip(widths, widths[1:])):
        layers += [torch.nn.Linear(a, b)] + ([torch.nn.ReLU()] if i + 2 < len(widths) else [])
    return torch.nn.Sequential(*layers)


def loss_of(kind, output, labels):
    if kind == "mse":
        return F.mse_loss(output, F.one_hot(labels, output.shape[1]).float())
    return F.cross_entropy(output, labels)


def samplers():
    print("""\
# DistributedSampler: samples, ranks, rank, seed, epoch, in order, drop_last; its length, an FNV-1a
# hash of all indices as 32-bit numbers, and the first four.""")
    shuffled = [(10, 1, 0, 0), (10, 3, 0, 0), (11, 4, 5, 2), (3, 8, 1, 0), (1, 2, 0, 0),
                (1000, 7, 123, 9), (60000, 1, 0, 0), (60000, 2, 0, 1), (60000, 7, 42, 3),
                (10007, 5, 4294967290, 10)]
    cases = [case + (True, False) for case in shuffled]
    cases += [case + (True, True) for case in shuffled]
    cases += [(n, ranks, 7, 3, False, drop) for n, ranks in [(10, 1), (11, 4), (3, 8), (60000, 7)]
              for drop in (False, True)]
    for n, ranks, seed, epoch, shuffle, drop in cases:
        for rank in sorted({0, ranks - 1}):
            sampler = DistributedSampler(range(n), num_replicas=ranks, rank=rank, shuffle=shuffle,
                                         seed=seed, drop_last=drop)
            if len(sampler) == 0:
                continue
            sampler.set_epoch(epoch)
            order = list(sampler)
            value = 0xcbf29ce484222325
            for byte in numpy.array(order, dtype="<u4").tobytes():
                value = (value ^ byte) * 0x100000001b3 % 2**64
            table("sampler", [n, ranks, rank, seed, epoch, int(not shuffle), int(drop),
                              len(order), f"0x{value:016x}"] + order[:4], "{}")


def layers(kind):
    widths, batch = [6, 5, 4, 3], 7
    model = network(widths, 3)
    images = torch.empty(batch, widths[0]).uniform_(-1, 1)
    labels = torch.tensor([i % widths[-1] for i in range(batch)])
    output = model(images)
    loss = loss_of(kind, output, labels)
    loss.backward()
    grads = torch.cat([p.grad.flatten() for p in model.parameters()])
    table(f"{kind}_output", output.flatten().tolist())
    table(f"{kind}_loss", [loss.item()])
    table(f"{kind}_grads", grads.tolist())


def initial():
    model = network([784, 256, 64, 10], 7)
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    value = 0xcbf29ce484222325
    for byte in flat.numpy().tobytes():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    print("# FNV-1a of all parameters of 784-256-64-10 after torch.manual_seed(7).")
    table("initial_hash", [f"0x{value:016x}"], "{}")


def warmup_decay(update, low, high, warmup, total):
    i = update - 2
    if i < 0:
        return low
    gamma = i / warmup if i < warmup else max(0.0, (total - i) / (total - warmup))
    return low + (high - low) * gamma


def train(name, images, labels, batches, kind, make, rate=None, clip=0.0, seed=1):
    model = network([784, 256, 64, 10], seed)
    optimizer = make(model.parameters())
    losses, norms = [], []
    for step, rows in enumerate(batches, 1):
        optimizer.zero_grad()
        loss = loss_of(kind, model(images[rows]), labels[rows])
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip if clip else 1e30)
        if rate:
            optimizer.param_groups[0]["lr"] = rate(step)
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    table(f"{name}_losses", losses)
    table(f"{name}_norms", norms)


def synthetic():
    samples, batch = 320, 32
    torch.manual_seed(11)
    images = torch.empty(samples * 784).uniform_(0, 256).to(torch.uint8)
    labels = torch.empty(samples).uniform_(0, 10).to(torch.int64)
    images = images.reshape(samples, 784).float() / 255
    batches = []
    for epoch in range(6):
        sampler = DistributedSampler(range(samples), num_replicas=1, rank=0, seed=0)
        sampler.set_epoch(epoch)
        order = list(sampler)
        batches += [order[i:i + batch] for i in range(0, samples, batch)]
    optim = torch.optim
    train("sgd", images, labels, batches, "mse", lambda p: optim.SGD(p, lr=0.01),
          lambda step: warmup_decay(step, 1e-4, 0.1, 20, 50))
    train("momentum", images, labels, batches, "cross_entropy",
          lambda p: optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=1e-3, nesterov=True),
          clip=0.5)
    train("adam", images, labels, batches, "cross_entropy",
          lambda p: optim.Adam(p, lr=1e-4, weight_decay=1e-2))
    train("adamw", images, labels, batches, "mse",
          lambda p: optim.AdamW(p, lr=1e-4, betas=(0.8, 0.99), eps=1e-7, weight_decay=0.1),
          clip=1.0)


def mnist(folder):
    with gzip.open(f"{folder}/train-images-idx3-ubyte.gz") as file:
        images = numpy.frombuffer(file.read(), numpy.uint8, offset=16).reshape(-1, 784)
    with gzip.open(f"{folder}/train-labels-idx1-ubyte.gz") as file:
        labels = numpy.frombuffer(file.read(), numpy.uint8, offset=8)
    images = torch.tensor(images).float() / 255
    labels = torch.tensor(labels).long()
    order = list(DistributedSampler(range(60000), num_replicas=1, rank=0, seed=0))
    batches = [order[i:i + 128] for i in range(0, 100 * 128, 128)]
    print("# The first 100 updates of docs/examples/mnist/deeps.json, global batch 128.")
    train("mnist", images, labels, batches, "mse", lambda p: torch.optim.SGD(p, lr=0.01),
          lambda step: warmup_decay(step, 1e-4, 0.1, 1000, 9000), clip=1.0, seed=0)


def main():
    title("make_vectors.py")
    samplers()
    initial()
    layers("mse")
    layers("cross_entropy")
    synthetic()
    if len(sys.argv) > 1:
        mnist(sys.argv[1])


if __name__ == "__main__":
    main()
