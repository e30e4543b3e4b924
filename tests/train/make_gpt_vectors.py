# SPDX-License-Identifier: Apache-2.0
"""Writes vectors/gpt.txt: what PyTorch computes with the ops of a GPT and with a small one, for
test_gpt.c.

    pip install torch==2.15.0 numpy
    python3 make_gpt_vectors.py > vectors/gpt.txt

First parameters are drawn from torch's generator; inputs are a formula of their place. Of
parameters and gradients some values are stored, and a weighted sum of all.
"""
import math

import numpy
import torch
import torch.nn.functional as F
from torch import nn

from make_vectors import table, tables_of_adam, title

torch.set_num_threads(1)
STEPS, PICKED, BATCH, ADAM_RATE = 50, 8, 4, 1e-3
LAYERS, HEADS, WIDTH, TOKENS, WORDS = 2, 2, 36, 16, 50


def hashed(begin, count):
    return numpy.arange(begin, begin + count, dtype=numpy.uint64) * 2654435761 % 2**32


def scattered(begin, *shape):
    """Between -1 and 1, in no order."""
    flat = hashed(begin, math.prod(shape)) / 2**31 - 1.0
    return torch.tensor(flat.reshape(shape), dtype=torch.float32)


def words(begin, *shape):
    ids = (hashed(begin, math.prod(shape)) >> 16) % WORDS
    return torch.tensor(ids.astype(numpy.int64).reshape(shape))


# ---- Ops ----

def attend(qkv, heads):
    batch, tokens, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    q, k, v = (x.view(batch, tokens, heads, width // heads).transpose(1, 2)
               for x in qkv.split(width, dim=2))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out.transpose(1, 2).reshape(batch, tokens, width)


def op(name, function, given, *params):
    """Forward, and backward from out_grad = scattered(5000)."""
    given.requires_grad_(given.is_floating_point())
    for p in params:
        p.requires_grad_()
    out = function(given, *params)
    out.backward(scattered(5000, *out.shape))
    wanted = [out] + ([given.grad] if given.grad is not None else []) + [p.grad for p in params]
    table(f"{name}_results",
          [v for t in wanted for v in t.detach().flatten().tolist()])


def ops():
    op("gelu", F.gelu, 4 * scattered(0, 2, 11))
    op("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), 4 * scattered(0, 2, 11))
    op("layer_norm", lambda x, w, b: F.layer_norm(x, (19,), w, b), scattered(0, 2, 3, 19),
       scattered(1000, 19), scattered(2000, 19))
    op("attention", lambda x: attend(x, 3), 3 * scattered(0, 2, 5, 18))
    op("embedding", lambda x, w: F.embedding(x, w), words(0, 2, 4), scattered(1000, WORDS, 3))
    op("position_embedding", lambda x, w: x + w, scattered(0, 2, 3, 5), scattered(1000, 3, 5))
    op("token_linear", F.linear, scattered(0, 2, 3, 5), scattered(1000, 4, 5), scattered(2000, 4))


# ---- A GPT ----

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.c_attn = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.attn_proj = nn.Linear(WIDTH, WIDTH)
        self.ln_2, self.c_fc = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH)
        self.mlp_proj = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attn_proj(attend(self.c_attn(self.ln_1(x)), HEADS))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.h = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.ln_f = nn.LayerNorm(WIDTH)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(TOKENS))
        return F.linear(self.ln_f(self.h(x)), self.wte.weight)


def start(model):
    """As nanoGPT, in the order of the parameters."""
    torch.manual_seed(7)
    for name, p in model.named_parameters():
        if p.dim() > 1:
            nn.init.normal_(p, 0.0, 0.02 / math.sqrt(2 * LAYERS) if "_proj" in name else 0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(p)


def weighted_sum(tensor):
    flat = tensor.detach().flatten().double().numpy()
    return float(numpy.dot(flat, hashed(0, len(flat)) / 2**31 - 1.0))


def picked_of(tensor):
    flat = tensor.detach().flatten()
    return [flat[i * (len(flat) - 1) // (PICKED - 1)].item() for i in range(PICKED)]


def loss_of(model, step):
    text = words(step * 1000, BATCH, TOKENS + 1)
    return F.cross_entropy(model(text[:, :-1]).reshape(-1, WORDS), text[:, 1:].reshape(-1))


def adam_steps(dtype):
    """@return losses, and how far each parameter moved."""
    model = GPT()
    start(model)
    params = list(model.to(dtype).parameters())
    first = [p.detach().clone() for p in params]
    optimizer = torch.optim.Adam(params, lr=ADAM_RATE)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses, [p.detach() - s for p, s in zip(params, first)]


def gpt():
    model = GPT()
    start(model)
    params = list(model.parameters())
    first = [p.detach().clone() for p in params]
    table("gpt_initial", [v for p in params for v in picked_of(p)])
    optimizer = torch.optim.SGD(params, lr=0.01)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            table("gpt_picked", [v for p in params for v in picked_of(p.grad)])
            table("gpt_largest", [p.grad.abs().max().item() for p in params])
            table("gpt_sums", [weighted_sum(p.grad) for p in params])
        optimizer.step()
    table("gpt_losses", losses)
    moved = [p.detach() - s for p, s in zip(params, first)]
    table("gpt_moved", [v for m in moved for v in picked_of(m)])
    table("gpt_most_moved", [m.abs().max().item() for m in moved])


title("make_gpt_vectors.py")
ops()
gpt()
tables_of_adam("gpt", ADAM_RATE, picked_of, *adam_steps(torch.float64), *adam_steps(torch.float32))
