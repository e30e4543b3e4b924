#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GPT that learns a text letter by letter. On each of two hosts, 0 and 1 in the place of N:
torchrun --nnodes 2 --node-rank N --master-addr HOST0 --nproc-per-node 2 gpt.py --text FILE"""
import argparse
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--text", type=Path, default=__file__)
for name, default in {"layers": 6, "width": 384, "context": 64, "batch": 8, "steps": 100}.items():
    parser.add_argument(f"--{name}", type=int, default=default)
parser.add_argument("--backend", default="ring")


class Gpt(nn.Module):
    def __init__(self, letters, args):
        super().__init__()
        self.letters = nn.Embedding(letters, args.width)
        self.places = nn.Parameter(torch.zeros(args.context, args.width))
        layer = nn.TransformerEncoderLayer(args.width, args.width // 64, 4 * args.width, 0.0,
                                           "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, args.layers, enable_nested_tensor=False)
        self.head = nn.Linear(args.width, letters)

    def forward(self, text):
        mask = nn.Transformer.generate_square_subsequent_mask(text.shape[1])
        return self.head(self.blocks(self.letters(text) + self.places, mask, is_causal=True))


def main(args):
    dist.init_process_group(args.backend)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    text = Path(args.text).read_text()
    alphabet = sorted(set(text))
    letters = torch.tensor([alphabet.index(letter) for letter in text])
    torch.manual_seed(0)
    model = DistributedDataParallel(Gpt(len(alphabet), args), gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(rank)  # each rank reads elsewhere
    for step in range(args.steps + 1):
        starts = torch.randint(len(letters) - args.context, (args.batch,)).tolist()
        batch = torch.stack([letters[start:start + args.context + 1] for start in starts])
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step}: loss {loss:.3f} on {ranks} ranks", flush=True)
    dist.destroy_process_group()


main(parser.parse_args())
