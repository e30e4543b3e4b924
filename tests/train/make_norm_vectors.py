#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes norm_vectors.h: what torchvision's ToTensor and Normalize, which are div, sub_ and div_ of
PyTorch in float32, make of each byte. Needs PyTorch; run by hand:

    python3 make_norm_vectors.py > norm_vectors.h
"""
import torch

CASES = ((0.1307, 0.3081), (0.485, 0.229), (0.5, 0.5))


def fnv1a(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001b3) & (2**64 - 1)
    return value


print("/* SPDX-License-Identifier: Apache-2.0\n"
      f" * Written by make_norm_vectors.py with PyTorch {torch.__version__.split('+')[0]}. */\n"
      "#ifndef TRAIN_NORM_VECTORS_H\n#define TRAIN_NORM_VECTORS_H\n\n"
      "/* Bytes 0 to 255, normalized: fnv1a() of 256 floats. */\n"
      "static const struct {\n    const char *norm;\n    uint64_t hash;\n} norm_vectors[] = {")
for mean, std in CASES:
    numbers = torch.arange(256, dtype=torch.uint8).to(torch.float32).div(255)
    numbers.sub_(torch.as_tensor([mean], dtype=torch.float32))
    numbers.div_(torch.as_tensor([std], dtype=torch.float32))
    print(f'    {{"{mean}/{std}", {fnv1a(numbers.numpy().tobytes()):#018x}U}},')
print("};\n\n#endif")
