# SPDX-License-Identifier: Apache-2.0
"""Writes vectors/groups.txt: parameters after some updates of PyTorch's optimisers with two
parameter groups, each with a learning rate and a weight decay of its own, under schedules.

    pip install torch==2.13.0
    python3 make_group_vectors.py > vectors/groups.txt

WarmupCosineLR is DeepSpeed's rule: a ratio, the same for all groups, times each group's own rate;
the first update has its constructor's rate, 0.
"""
import math

import torch
from torch.optim import lr_scheduler

from make_vectors import table, title

UPDATES, ELEMENTS = 6, 64
LAID = [(0, 13), (13, 11), (24, 7), (33, 5), (38, 26)]  # as test_parameter_groups.c
NO_DECAY = {2, 3}


def drawn(seed):
    values = [(i + seed) * 2654435761 % 2**32 / 2**31 - 1 for i in range(ELEMENTS)]
    return torch.tensor(values, dtype=torch.float64).float()


def parts(flat):
    return [flat[at:at + count].clone() for at, count in LAID]


def warmup_cosine(update, warmup=2, total=6, least=0.1):
    if update == 0:
        return 0.0
    i = update - 1
    if i < warmup:
        return i / warmup
    way = min(1.0, (i - warmup + 1) / (total - warmup))
    return max(0.0, least + (1 - least) * (1 + math.cos(math.pi * way)) / 2)


def train(name, kind, scheduler, **options):
    tensors = [torch.nn.Parameter(part) for part in parts(drawn(1))]
    decays = [t for i, t in enumerate(tensors) if i not in NO_DECAY]
    others = [t for i, t in enumerate(tensors) if i in NO_DECAY]
    optimizer = kind([{"params": decays, "weight_decay": 0.3},
                      {"params": others, "weight_decay": 0.0, "lr": 0.02}], lr=0.1, **options)
    schedule = scheduler(optimizer)
    for update in range(UPDATES):
        for tensor, grad in zip(tensors, parts(drawn(100 * update + 50))):
            tensor.grad = grad
        optimizer.step()
        schedule.step()
    table(name, torch.cat([t.detach() for t in tensors]).tolist())


def main():
    title("make_group_vectors.py")
    optim = torch.optim
    train("groups_constant", optim.SGD, lambda o: lr_scheduler.LambdaLR(o, lambda i: 1.0),
          momentum=0.9)
    train("groups_annealing", optim.AdamW,
          lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=4, eta_min=0.01))
    train("groups_stairs", optim.SGD, lambda o: lr_scheduler.StepLR(o, 2, gamma=0.5))
    train("groups_cosine", optim.AdamW, lambda o: lr_scheduler.LambdaLR(o, warmup_cosine))


if __name__ == "__main__":
    main()
