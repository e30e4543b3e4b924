#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains MNIST with Adam in PyTorch for compare_train.py: in a single process, in DDP over Gloo, or
in DeepSpeed.

The whole data set is in memory as float32. Each rank has one thread and is bound to a core if there
are enough, as under ringrun --bind-to core. Adam is PyTorch's fastest one (fused). Prints JSON:
samples_per_s over the steps after the warm-up, and first_step_s, the seconds from process start to
the end of the first step. Start it with torchrun.
"""
import os
import time

STARTED = float(os.environ.get("BENCH_STARTED", time.time()))

from cores import stay_on_a_core

stay_on_a_core(*(int(os.environ[name]) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE")))

import argparse
import gzip
import json

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from torch_models import lenet5, mlp

MODELS = {"mlp": mlp, "lenet5": lenet5}


def read_idx(folder, name, offset):
    path = os.path.join(folder, name)
    opener = open if os.path.exists(path) else gzip.open
    with opener(path if opener is open else path + ".gz", "rb") as file:
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=offset)


def plain(model, batch):
    """@return a function that makes one training step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def ddp(model, batch):
    return plain(nn.parallel.DistributedDataParallel(model), batch)


def deepspeed(model, batch):
    import deepspeed as ds
    config = {"train_micro_batch_size_per_gpu": batch, "gradient_accumulation_steps": 1,
              "optimizer": {"type": "Adam", "params": {"lr": 1e-3}}, "gradient_clipping": 0,
              "steps_per_print": 1 << 30}
    engine, *_ = ds.initialize(model=model, model_parameters=model.parameters(), config=config)

    def step(x, y):
        engine.backward(F.cross_entropy(engine(x), y))
        engine.step()

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--engine", choices=["plain", "ddp", "deepspeed"], default="ddp")
    parser.add_argument("--model", choices=MODELS, default="mlp")
    parser.add_argument("--flush-denormal", action="store_true")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(args.flush_denormal)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = read_idx(args.data, "train-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28).float() / 255
    y = read_idx(args.data, "train-labels-idx1-ubyte", 8).long()
    torch.manual_seed(0)
    train = globals()[args.engine](MODELS[args.model](), args.batch)
    order = torch.randperm(len(x))[rank::ranks]
    first = begin = 0.0
    for step in range(args.warmup + args.steps):
        if step == args.warmup:
            begin = time.time()
        start = step * args.batch % (len(order) - args.batch)
        index = order[start:start + args.batch]
        train(x[index], y[index])
        if step == 0:
            first = time.time() - STARTED
    seconds = time.time() - begin
    if rank == 0:
        print(json.dumps({"samples_per_s": args.steps * args.batch * ranks / seconds,
                          "first_step_s": first}))
    dist.destroy_process_group()


main()
