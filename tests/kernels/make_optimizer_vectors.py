#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes stored_optimizer.h: three steps of PyTorch's optimisers on a few parameters, and
of Lion's published update (Chen et al., 2023, algorithm 2) in PyTorch's float32.

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
    ("Lion", dict(lr=1e-3, betas=(0.9, 0.99))),
    ("Lion", dict(lr=3e-2, betas=(0.8, 0.95), weight_decay=0.2)),
    ("Adagrad", dict(lr=1e-2, eps=1e-10)),
    ("Adagrad", dict(lr=0.1, eps=1e-6, lr_decay=0.5, weight_decay=0.03)),
]


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr, betas, weight_decay=0.0, foreach=False, fused=False):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(torch.sign(beta1 * m + (1 - beta1) * p.grad), alpha=group["lr"])
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)


def run(name, options, start, grads):
    param = torch.nn.Parameter(start.clone())
    kind = Lion if name == "Lion" else getattr(torch.optim, name)
    optimizer = kind([param], foreach=False, fused=False, **options)
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
    kind = "adam" if name == "AdamW" else name.lower()
    if "betas" in values:
        values["beta1"], values["beta2"] = values.pop("betas")
    if name == "SGD":
        values["nesterov"] = int(options.get("nesterov", False))
    elif kind == "adam":
        values.setdefault("beta1", 0.9)
        values.setdefault("beta2", 0.999)
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
    print("typedef struct stored_case {\n    bool is_sgd, is_adam, is_lion, is_adagrad;")
    print("    kernel_sgd sgd;\n    kernel_adam adam;\n    kernel_lion lion;")
    print("    kernel_adagrad adagrad;\n    float end[STORED_COUNT];\n} stored_case;\n")
    print("static const stored_case stored_cases[] = {")
    for name, options in CASES:
        print(f"{{ /* {name} */\n{fields(name, options)}")
        print(".end = " + array(run(name, options, start, grads)) + "},")
    print("};")


main()
