# SPDX-License-Identifier: Apache-2.0
"""Writes vectors/models.txt: what PyTorch computes with the built-in networks, for test_models.c.

    pip install torch==2.15.0 numpy
    python3 make_model_vectors.py > vectors/models.txt

Parameters, images and labels are drawn from torch's generator, which train/base/random.c
reproduces bit for bit. Of gradients some values are stored, and a weighted sum of all.
"""
import numpy
import torch
import torch.nn.functional as F
from torch import nn

from make_vectors import table, tables_of_adam, title

torch.set_num_threads(1)
STEPS, PICKED = 50, 16


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 64),
                         nn.ReLU(), nn.Linear(64, 10))


def lenet5():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def alexnet():
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, stride=2, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 192, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(0.0), nn.Linear(1024, 4096), nn.ReLU(),
        nn.Dropout(0.0), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10))


def fnv1a(data):
    """Of 32-bit words, not bytes: there are many."""
    value = 0xcbf29ce484222325
    for word in data.view(numpy.uint32).tolist():
        value = (value ^ word) * 0x100000001b3 % 2**64
    return value


def weights(count):
    """Between -1 and 1, in no order."""
    return (numpy.arange(count, dtype=numpy.uint64) * 2654435761 % 2**32) / 2**31 - 1.0


def weighted_sum(tensor):
    flat = tensor.detach().flatten().double().numpy()
    return float(numpy.dot(flat, weights(len(flat))))


def picked_of(tensor):
    flat = tensor.detach().flatten()
    return [flat[i * (len(flat) - 1) // (PICKED - 1)].item() for i in range(PICKED)]


def batches(batch, shape):
    for _ in range(STEPS):
        images = torch.empty(batch, *shape).uniform_(0, 1)
        labels = torch.empty(batch).uniform_(0, 10).to(torch.int64)
        for image, label in zip(images, labels):
            image[:, 2 * label:2 * label + 3] += 4.0  # three rows, to have something to learn
        yield images, labels


def sgd(name, build, shape, batch):
    torch.manual_seed(7)
    model = build()
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    start = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses, picked, largest, sums = [], [], [], []
    for step, (images, labels) in enumerate(batches(batch, shape)):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            for p in model.parameters():
                picked += picked_of(p.grad)
                largest.append(p.grad.abs().max().item())
                sums.append(weighted_sum(p.grad))
        optimizer.step()
    print(f"# {name}: of all parameters after torch.manual_seed(7), FNV-1a of their words.")
    table(f"{name}_initial", [f"0x{fnv1a(flat.numpy()):016x}"], "{}")
    table(f"{name}_losses", losses)
    table(f"{name}_picked", picked)
    table(f"{name}_largest", largest)
    table(f"{name}_sums", sums)
    moved = [p.detach() - s for p, s in zip(model.parameters(), start)]
    table(f"{name}_moved", [value for m in moved for value in picked_of(m)])
    table(f"{name}_most_moved", [m.abs().max().item() for m in moved])


def adam_steps(build, shape, batch, rate, dtype):
    """@return losses, and how far each parameter moved."""
    torch.manual_seed(7)
    model = build().to(dtype)
    start = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for images, labels in batches(batch, shape):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(dtype)), labels)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses, [p.detach() - s for p, s in zip(model.parameters(), start)]


def vectors(name, build, shape, batch, rate):
    sgd(name, build, shape, batch)
    tables_of_adam(name, rate, picked_of, *adam_steps(build, shape, batch, rate, torch.float64),
                   *adam_steps(build, shape, batch, rate, torch.float32))


title("make_model_vectors.py")
vectors("mlp", mlp, (1, 28, 28), 16, 1e-3)
vectors("lenet5", lenet5, (1, 28, 28), 16, 1e-3)
# At 1e-3 what PyTorch computes with and without oneDNN is soon 0.2 apart.
vectors("alexnet", alexnet, (3, 32, 32), 4, 1e-4)
