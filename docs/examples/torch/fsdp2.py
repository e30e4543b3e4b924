#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FSDP2, which shares a network out to the ranks:   torchrun --nproc-per-node 2 fsdp2.py"""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import FSDPModule, fully_shard

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--width", type=int, default=256)
parser.add_argument("--backend", default="ring")


def block(width):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                         nn.Linear(4 * width, width))


def shard(model):
    for part in model:
        fully_shard(part)
    fully_shard(model)
    if dist.get_backend() == "ring":  # buffers in memory that the ranks of a host share
        for part in model.modules():
            if isinstance(part, FSDPModule):
                part.set_allocate_memory_from_process_group_for_comm(True)


def main(args):
    dist.init_process_group(args.backend)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.Sequential(*(block(args.width) for _ in range(3)), nn.Linear(args.width, 1))
    teacher = nn.Sequential(nn.Linear(args.width, 32), nn.Tanh(), nn.Linear(32, 1))
    whole = sum(parameter.numel() for parameter in model.parameters())
    shard(model)
    held = sum(parameter.to_local().numel() for parameter in model.parameters())
    print(f"rank {rank} holds {held} of {whole} parameters")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    torch.manual_seed(rank)  # samples of its own
    for step in range(args.steps + 1):
        x = torch.randn(64, args.width)
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), teacher(x).detach())
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            mean = loss.detach() / ranks
            dist.all_reduce(mean)
            if rank == 0:
                print(f"step {step}: loss {mean:.4f}")
    dist.destroy_process_group()


main(parser.parse_args())
