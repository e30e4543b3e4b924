#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of compare_train.py: the MNIST MLP with Adam in PyTorch DDP over Gloo.

The whole data set lies in memory as float32; one thread a rank; batch 64 a rank. Prints JSON:
samples_per_s over the steps after the warm-up, and seconds from process start to the end of the
first step. Start with torchrun. Each rank stays on a core of its own where all have one, as under
ringrun --bind-to core.
"""
import os
import time

STARTED = float(os.environ.get("BENCH_STARTED", time.time()))


def read(path):
    with open(path) as file:
        return int(file.read())


def cores():
    """The CPUs of each core that this process may use, in ringrun's order."""
    places = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        about = f"/sys/devices/system/cpu/cpu{cpu}/topology"
        try:
            place = read(f"{about}/physical_package_id"), read(f"{about}/core_id")
        except OSError:
            place = 0, cpu
        places.setdefault(place, []).append(cpu)
    in_order = sorted((package, cpus) for (package, _), cpus in places.items())
    return [cpus for _, cpus in in_order]


def stay_on_a_core():
    rank, ranks = (int(os.environ[name]) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    there = cores()
    if ranks <= len(there):
        os.sched_setaffinity(0, there[rank])


stay_on_a_core()  # before torch: the threads that it starts stay there too

import argparse
import gzip
import json

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


def read_idx(folder, name, offset):
    path = os.path.join(folder, name)
    opener = open if os.path.exists(path) else gzip.open
    with opener(path if opener is open else path + ".gz", "rb") as file:
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=offset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = read_idx(args.data, "train-images-idx3-ubyte", 16).reshape(-1, 784).float() / 255
    y = read_idx(args.data, "train-labels-idx1-ubyte", 8).long()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(),
                          nn.Linear(64, 10))
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
    order = torch.randperm(len(x))[rank::ranks]
    first = begin = 0.0
    for step in range(args.warmup + args.steps):
        if step == args.warmup:
            begin = time.time()
        start = step * args.batch % (len(order) - args.batch)
        index = order[start:start + args.batch]
        optimizer.zero_grad()
        F.cross_entropy(model(x[index]), y[index]).backward()
        optimizer.step()
        if step == 0:
            first = time.time() - STARTED
    seconds = time.time() - begin
    if rank == 0:
        print(json.dumps({"samples_per_s": args.steps * args.batch * ranks / seconds,
                          "first_step_s": first}))
    dist.destroy_process_group()


main()
