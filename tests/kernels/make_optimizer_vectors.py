#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes stored_optimizer.h: three steps of PyTorch's optimisers on a few parameters.

    python3 make_optimizer_vectors.py > stored_optimizer.h        (needs PyTorch)
"""
import re

import torch

COUNT, STEPS = 37, 3
CASES = [
    ("SGD", dict(lr=0.1)),
    ("SGD", dict(lr=0.1, weight_decay=0.01)),
    ("SGD", dict(lr=0.05, momentum=0.9)),
    ("SGD", dict(lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.02)),
    ("SGD", dict(lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.02)),
    ("Adam", dict(lr=1e-3)),
    ("Adam", dict(lr=3e-3, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1)),
    ("AdamW", dict(lr=1e-3)),
    ("AdamW", dict(lr=1e-4, betas=(0.9, 0.95), eps=1e-7, weight_decay=0.3)),
]


def run(name, options, start, grads):
    param = torch.nn.Parameter(start.clone())
    optimizer = getattr(torch.optim, name)([param], foreach=False, fused=False, **options)
    for grad in grads:
        param.grad = grad.clone()
        optimizer.step()
    return param.detach()


def array(values):
    texts = [re.sub(r"\.?0*p", "p", float(x).hex()) + "f" for x in values]
    lines = ["    " + ", ".join(texts[i:i + 4]) for i in range(0, len(texts), 4)]
    return "{\n" + ",\n".join(lines) + "}"


def fields(name, options):
    """The case's arguments as C initialisers; what is not named is 0."""
    values = dict(scale=1, **options)
    if name == "SGD":
        kind = "sgd"
        values["nesterov"] = int(options.get("nesterov", False))
    else:
        kind = "adam"
        values["beta1"], values["beta2"] = values.pop("betas", (0.9, 0.999))
        values.setdefault("eps", 1e-8)
        values.setdefault("weight_decay", 0.01 if name == "AdamW" else 0.0)
        values["decoupled"] = int(name == "AdamW")
        values["bias_correction"] = 1
    inside = [f".{key} = {value!r}" for key, value in values.items() if value != 0]
    lines = [", ".join(inside[i:i + 4]) for i in range(0, len(inside), 4)]
    return f".is_{kind} = true,\n.{kind} = {{" + ",\n         ".join(lines) + "},"


def main():
    torch.manual_seed(20)
    start = torch.randn(COUNT)
    grads = [torch.randn(COUNT) * 10.0 ** torch.randint(-4, 2, (COUNT,)) for _ in range(STEPS)]
    print("/* SPDX-License-Identifier: Apache-2.0")
    print(f" * Written by make_optimizer_vectors.py with PyTorch {torch.__version__}: parameters")
    print(f" * after {STEPS} steps of each optimiser. */")
    print(f"enum {{ STORED_COUNT = {COUNT}, STORED_STEPS = {STEPS} }};\n")
    print("static const float stored_start[STORED_COUNT] = " + array(start) + ";\n")
    print("static const float stored_grads[STORED_STEPS][STORED_COUNT] = {")
    print(",\n".join(array(g) for g in grads) + "};\n")
    print("typedef struct stored_case {\n    bool is_sgd, is_adam;\n    kernel_sgd sgd;")
    print("    kernel_adam adam;\n    float end[STORED_COUNT];\n} stored_case;\n")
    print("static const stored_case stored_cases[] = {")
    for name, options in CASES:
        print(f"{{ /* {name} */\n{fields(name, options)}")
        print(".end = " + array(run(name, options, start, grads)) + "},")
    print("};")


main()
