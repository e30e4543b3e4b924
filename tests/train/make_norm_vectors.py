#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes vectors/norms.txt: what torchvision's ToTensor and Normalize, which are div, sub_ and
div_ of PyTorch in float32, make of each byte. Needs PyTorch; run by hand:

    python3 make_norm_vectors.py > vectors/norms.txt
"""
import torch

from make_vectors import table, title

CASES = ((0.1307, 0.3081), (0.485, 0.229), (0.5, 0.5))


def fnv1a(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001b3) & (2**64 - 1)
    return value


title("make_norm_vectors.py")
print("# Bytes 0 to 255, normalized: fnv1a() of 256 floats.")
for mean, std in CASES:
    numbers = torch.arange(256, dtype=torch.uint8).to(torch.float32).div(255)
    numbers.sub_(torch.as_tensor([mean], dtype=torch.float32))
    numbers.div_(torch.as_tensor([std], dtype=torch.float32))
    table("norm", [f"{mean}/{std}", f"{fnv1a(numbers.numpy().tobytes()):#018x}"], "{}")
