#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel on MNIST:   torchrun --nproc-per-node 2 ddp_mnist.py --data DIR"""
import argparse
import gzip
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", required=True, help="folder of MNIST's four files, packed or not")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch", type=int, default=64, help="images of a rank")
parser.add_argument("--backend", default="ring")


def read(folder, name, header):
    path = os.path.join(folder, name)
    with open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz") as file:
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=header)


def load(folder, part):
    images = read(folder, f"{part}-images-idx3-ubyte", 16).view(-1, 784).float() / 255
    return images, read(folder, f"{part}-labels-idx1-ubyte", 8).long()


def main(args):
    dist.init_process_group(args.backend)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)  # on all ranks: they shuffle alike
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    # Gradients are views of buckets, which lie in memory that the ranks of a host share.
    model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = load(args.data, "train")
    x_test, y_test = (part[rank::ranks] for part in load(args.data, "t10k"))
    for epoch in range(1, args.epochs + 1):
        for index in torch.randperm(len(x))[rank::ranks][:len(x) // ranks].split(args.batch):
            optimizer.zero_grad()
            F.cross_entropy(model(x[index]), y[index]).backward()  # averages meanwhile
            optimizer.step()
        with torch.no_grad():
            right = (model(x_test).argmax(1) == y_test).sum()
        counts = torch.tensor([right, len(y_test)])
        dist.all_reduce(counts)
        if rank == 0:
            print(f"epoch {epoch}: accuracy {counts[0] / counts[1]:.4f} on {ranks} ranks")
    dist.destroy_process_group()


main(parser.parse_args())
