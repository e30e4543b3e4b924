#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch moves per second on the first GPU, and NCCL through torch.distributed where there
are several. Usage: torch_beside.py BYTES. With `trainer` for BYTES: updates per second of networks
of ringtrain, in a CUDA graph. Prints rows as programs of tests/gpu do; 77: cannot."""

import os
import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    print("SKIPPED: this Python has no PyTorch")
    sys.exit(77)

ROUNDS, BATCHES = 20, 5
UPDATES, SAMPLES = 10, 64  # of a graph, of an update


def row(name, value, unit):
    print(f"ROW\t{name}\t{value:.6g}\t{unit}", flush=True)


def seconds_of(work):
    """The least of one, of some batches after one to warm up."""
    least = float("inf")
    for batch in range(BATCHES + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(ROUNDS):
            work()
        torch.cuda.synchronize()
        if batch > 0:
            least = min(least, (time.perf_counter() - start) / ROUNDS)
    return least


def tell(name, moved, work):
    row(f"PyTorch: {name}, bytes moved", moved / seconds_of(work) / 1e9, "GB/s")


def measure_one(size):
    a, b, c = (torch.zeros(size // 4, device="cuda") for _ in range(3))
    half = torch.zeros(size // 4, device="cuda", dtype=torch.bfloat16)
    tell("copy_", 2 * size, lambda: a.copy_(b))
    tell("torch.add of float32", 3 * size, lambda: torch.add(a, b, out=c))
    tell("copy_ of float32 to bfloat16", 1.5 * size, lambda: half.copy_(a))
    a.grad = b
    tell("fused Adam", 7 * size, torch.optim.Adam([a], lr=1e-3, fused=True).step)


def measure_nccl(rank, ranks, size):
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", rank=rank, world_size=ranks)
    for bytes_ in (8, size):
        x = torch.zeros(bytes_ // 4, device="cuda")
        seconds = seconds_of(lambda: torch.distributed.all_reduce(x))
        if rank == 0:
            row(f"NCCL: all_reduce of {bytes_} bytes, {ranks} GPUs", 1e6 * seconds, "us")
    torch.distributed.destroy_process_group()


def networks():
    yield "MLP", nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 64),
                               nn.ReLU(), nn.Linear(64, 10))
    yield "LeNet-5", nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84),
        nn.ReLU(), nn.Linear(84, 10))


def measure_updates(name, model):
    images = torch.rand(SAMPLES, 1, 28, 28, device="cuda")
    labels = torch.randint(10, (SAMPLES,), device="cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=True)

    def update():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # captures demand eager updates before, on another stream
        for _ in range(3):
            update()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(UPDATES):
            update()
    row(name, UPDATES / seconds_of(graph.replay), "per second")


def main():
    if not torch.cuda.is_available():
        print("SKIPPED: PyTorch finds no GPU")
        return 77
    if sys.argv[1] == "trainer":
        torch.backends.cudnn.allow_tf32 = False  # as for products
        for name, model in networks():
            measure_updates(name, model.cuda())
        return 0
    size = int(sys.argv[1])
    measure_one(size)
    ranks = torch.cuda.device_count()
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517")
        torch.multiprocessing.spawn(measure_nccl, (ranks, size), nprocs=ranks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
