#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch moves per second on the first GPU, and NCCL through torch.distributed where there
are several. Usage: torch_beside.py BYTES. Prints rows as programs of tests/gpu do; 77: cannot."""

import os
import sys
import time

try:
    import torch
except ImportError:
    print("SKIPPED: this Python has no PyTorch")
    sys.exit(77)

ROUNDS, BATCHES = 20, 5


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


def main():
    size = int(sys.argv[1])
    if not torch.cuda.is_available():
        print("SKIPPED: PyTorch finds no GPU")
        return 77
    measure_one(size)
    ranks = torch.cuda.device_count()
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517")
        torch.multiprocessing.spawn(measure_nccl, (ranks, size), nprocs=ranks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
