#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank of torch.distributed that checks the values of PyTorch's calls. The backend nccl loads
libring's libnccl.so.2 if `ringrun --nccl` starts the ranks. The values are small integers, which
all types hold.

    torch_over_nccl.py [--backend nccl] [--device cuda:0] CHECK...

Prints `CHECK<tab>name<tab>rank<tab>ok` after each check. A check that fails or takes longer than
--seconds ends the rank, with backtraces. `list` prints the checks that the backend can run. Exit
status 77: this Python has no PyTorch, or PyTorch finds no GPU."""

import argparse
import copy
import faulthandler
import os
import sys
import traceback

try:
    import torch
    import torch._dynamo  # optimizers import it, and checks are timed
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import _coalescing_manager
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel
except ImportError:
    print("SKIPPED: this Python has no PyTorch")
    sys.exit(77)

COUNT = 1500
INTEGERS = (torch.uint8, torch.int8, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
OPS = {dist.ReduceOp.SUM: torch.sum, dist.ReduceOp.PRODUCT: torch.prod,
       dist.ReduceOp.MIN: torch.amin, dist.ReduceOp.MAX: torch.amax}


class Ranks:
    """This rank of the job, and the values that each rank contributes."""

    def __init__(self, device, backend):
        self.device, self.backend = torch.device(device), backend
        self.rank, self.count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.next, self.last = (self.rank + 1) % self.count, (self.rank - 1) % self.count

    def of(self, rank, count=COUNT, dtype=torch.float32):
        return ((torch.arange(count) + rank) % 3).to(dtype).to(self.device)

    def mine(self, count=COUNT, dtype=torch.float32):
        return self.of(self.rank, count, dtype)

    def reduced(self, op, count=COUNT):
        """Of all ranks' values, in int64 on the host."""
        return OPS[op](torch.stack([self.of(r, count).cpu().long() for r in range(self.count)]),
                       dim=0)

    def block(self, x):
        """This rank's share of what all ranks have."""
        return x.reshape(self.count, -1)[self.rank]


def same(got, want, title):
    """Compares values, whatever their types and devices."""
    got = got.detach().cpu()
    bad = (got.double() != want.detach().cpu().double()).nonzero()
    if got.numel() != want.numel() or bad.numel():
        raise AssertionError(f"{title}: {got.numel()} elements, {len(bad)} wrong, the first is "
                             f"{bad[0].tolist() if bad.numel() else None}")


def close(got, want, title):
    torch.testing.assert_close(got.detach().cpu(), want.detach().cpu(), rtol=1e-4, atol=1e-6,
                               msg=lambda text: f"{title}: {text}")


# ---- Calls --------------------------------------------------------------------------------------


def reductions(ranks):
    for dtype in (*INTEGERS, *FLOATS):
        for op in OPS:
            title, want = f"{op} of {dtype}", ranks.reduced(op)
            x = ranks.mine(dtype=dtype)
            dist.all_reduce(x, op)
            same(x, want, f"all_reduce, {title}")
            x = ranks.mine(dtype=dtype)
            dist.reduce(x, 0, op)
            if ranks.rank == 0:
                same(x, want, f"reduce, {title}")
            x = ranks.mine(ranks.count * COUNT, dtype)
            out = torch.empty(COUNT, dtype=dtype, device=ranks.device)
            dist.reduce_scatter_tensor(out, x, op)
            same(out, ranks.block(ranks.reduced(op, ranks.count * COUNT)),
                 f"reduce_scatter, {title}")


def averages(ranks):
    for dtype in FLOATS:
        x = torch.full((COUNT,), 2.0 * ranks.rank, dtype=dtype, device=ranks.device)
        dist.all_reduce(x, dist.ReduceOp.AVG)
        same(x, torch.full((COUNT,), ranks.count - 1.0), f"average of {dtype}")


def moves(ranks):
    all_of = torch.cat([ranks.of(r).cpu() for r in range(ranks.count)])
    for dtype in (torch.bool, *INTEGERS, *FLOATS):
        kind = f"of {dtype}"
        want = all_of.to(dtype)
        out = torch.empty(ranks.count * COUNT, dtype=dtype, device=ranks.device)
        dist.all_gather_into_tensor(out, ranks.mine(dtype=dtype))
        same(out, want, f"all_gather {kind}")
        x = ranks.mine(dtype=dtype)
        dist.broadcast(x, ranks.count - 1)
        same(x, ranks.of(ranks.count - 1, dtype=dtype), f"broadcast {kind}")
        parts = [torch.empty_like(x) for _ in range(ranks.count)] if ranks.rank == 0 else None
        dist.gather(ranks.mine(dtype=dtype), parts, 0)
        if ranks.rank == 0:
            same(torch.cat(parts), want, f"gather {kind}")
        give = [ranks.of(r, dtype=dtype) for r in range(ranks.count)] if ranks.rank == 0 else None
        dist.scatter(x, give, 0)
        same(x, ranks.mine(dtype=dtype), f"scatter {kind}")


def uneven_moves(ranks):
    lengths = [COUNT + 100 * r for r in range(ranks.count)]
    if ranks.backend == "nccl":  # the others gather equal lengths
        parts = [torch.empty(n, device=ranks.device) for n in lengths]
        dist.all_gather(parts, ranks.mine(lengths[ranks.rank]))
        for r, part in enumerate(parts):
            same(part, ranks.of(r, lengths[r]), f"the part of rank {r}")
    x = ranks.mine(ranks.count * COUNT)
    out = torch.empty_like(x)
    dist.all_to_all_single(out, x)
    same(out, torch.cat([ranks.block(ranks.of(r, ranks.count * COUNT)) for r in
                         range(ranks.count)]), "all_to_all of equal parts")
    # Rank r gives 10 * (r + 1) elements to each.
    give = 10 * (ranks.rank + 1)
    take = [10 * (r + 1) for r in range(ranks.count)]
    out = torch.empty(sum(take), device=ranks.device)
    dist.all_to_all_single(out, ranks.mine(give * ranks.count), take, [give] * ranks.count)
    same(out, torch.cat([ranks.block(ranks.of(r, n * ranks.count)) for r, n in enumerate(take)]),
         "all_to_all of unequal parts")


def pairs(ranks):
    out = torch.empty(COUNT, device=ranks.device)
    if ranks.rank % 2 == 0:
        dist.send(ranks.mine(), ranks.next)
        dist.recv(out, ranks.last)
    else:
        dist.recv(out, ranks.last)
        dist.send(ranks.mine(), ranks.next)
    same(out, ranks.of(ranks.last), "send and recv")
    out.zero_()
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, ranks.mine(), ranks.next),
                                        dist.P2POp(dist.irecv, out, ranks.last)]):
        work.wait()
    same(out, ranks.of(ranks.last), "a batch of isend and irecv")


def coalescing(ranks):
    tensors = [ranks.mine(100 * (k + 1)) for k in range(5)]
    with _coalescing_manager(device=ranks.device, async_ops=True) as manager:
        for x in tensors:
            dist.all_reduce(x)
    manager.wait()
    for k, x in enumerate(tensors):
        same(x, ranks.reduced(dist.ReduceOp.SUM, 100 * (k + 1)), f"all_reduce {k} of a group")


def streams(ranks):
    """Many calls from several streams, with work of PyTorch's between them."""
    side = [torch.cuda.Stream() for _ in range(3)]
    for k in range(30):
        with torch.cuda.stream(side[k % 3]):
            x = ranks.mine(10 ** (k % 5) + k) + k
            work = dist.all_reduce(x, async_op=True)
            work.wait()
            x -= ranks.count * k
        torch.cuda.current_stream().wait_stream(side[k % 3])
        same(x, ranks.reduced(dist.ReduceOp.SUM, x.numel()), f"call {k}")


def premul(ranks):
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        want = 2 * ranks.reduced(dist.ReduceOp.SUM, ranks.count * COUNT)
        x = ranks.mine(ranks.count * COUNT, dtype)
        out = torch.empty(COUNT, dtype=dtype, device=ranks.device)
        dist.reduce_scatter_tensor(out, x, dist._make_nccl_premul_sum(2.0))
        same(out, ranks.block(want), f"reduce_scatter of {dtype}")
        dist.all_reduce(x, dist._make_nccl_premul_sum(2.0))
        same(x, want, f"all_reduce of {dtype}")


def groups(ranks):
    for members in ([0], list(range(ranks.count))):
        group = dist.new_group(members)
        if ranks.rank in members:
            x = torch.ones(COUNT, device=ranks.device)
            dist.all_reduce(x, group=group)
            same(x, torch.full((COUNT,), float(len(members))), f"{len(members)} members")
            dist.destroy_process_group(group)


def split(ranks):
    group = dist.split_group(split_ranks=[list(range(ranks.count))])
    x = ranks.mine()
    dist.all_reduce(x, group=group)
    same(x, ranks.reduced(dist.ReduceOp.SUM), "all_reduce of the part")
    dist.destroy_process_group(group)


# ---- Training -----------------------------------------------------------------------------------


def network():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(64, 300), torch.nn.ReLU(),
                               torch.nn.Linear(300, 300), torch.nn.ReLU(),
                               torch.nn.Linear(300, 10))


def train(model, texts, targets, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(texts), targets).backward()
        optimizer.step()


def train_both(ranks, wrap):
    """The parameters of a network that the ranks trained, and of one that this rank trained alone
    with all ranks' samples."""
    alone = network().to(ranks.device)
    shared = wrap(copy.deepcopy(alone))
    torch.manual_seed(11)
    samples = torch.randn(16 * ranks.count, 64).to(ranks.device)
    targets = torch.randint(10, (16 * ranks.count,)).to(ranks.device)
    mine = slice(16 * ranks.rank, 16 * (ranks.rank + 1))
    train(alone, samples, targets)
    train(shared, samples[mine], targets[mine])
    return list(shared.parameters()), list(alone.parameters())


def ddp(ranks):
    got, want = train_both(ranks, lambda model: DistributedDataParallel(model, bucket_cap_mb=0.1))
    for k, (x, y) in enumerate(zip(got, want)):
        close(x, y, f"parameter {k}")


def fsdp2(ranks):
    def wrap(model):
        for layer in model:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer)
        return fully_shard(model)

    got, want = train_both(ranks, wrap)
    for k, (x, y) in enumerate(zip(got, want)):
        close(x.full_tensor(), y, f"parameter {k}")


def graphs(ranks):
    x = ranks.mine()
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        dist.all_reduce(x)
    for k in range(100):
        x.copy_(ranks.mine() + k)
        graph.replay()
        same(x, ranks.reduced(dist.ReduceOp.SUM) + ranks.count * k, f"replay {k}")


# ---- Runs ---------------------------------------------------------------------------------------

CHECKS = {check.__name__: check for check in (reductions, averages, moves, uneven_moves, pairs,
                                              coalescing, streams, premul, groups, split, ddp,
                                              fsdp2, graphs)}
ONLY_NCCL = ("averages", "coalescing", "streams", "premul", "split", "graphs")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--backend", default="nccl")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("checks", nargs="+", choices=[*CHECKS, "list"], metavar="CHECK")
    args = parser.parse_args()
    if args.device.startswith("cuda") and not torch.cuda.is_available():
        print("SKIPPED: PyTorch finds no GPU")
        return 77
    if args.checks == ["list"]:
        print(*(name for name in CHECKS if args.backend == "nccl" or name not in ONLY_NCCL))
        return 0
    ranks = Ranks(args.device, args.backend)
    is_cuda = ranks.device.type == "cuda"
    faulthandler.dump_traceback_later(args.seconds, exit=True)
    if is_cuda:
        torch.cuda.set_device(ranks.device)
    dist.init_process_group(args.backend, device_id=ranks.device if is_cuda else None)
    dist.barrier()
    for name in args.checks:
        faulthandler.dump_traceback_later(args.seconds, exit=True)
        try:
            CHECKS[name](ranks)
        except Exception:  # the other ranks may wait in a call: end the job
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        print(f"CHECK\t{name}\t{ranks.rank}\tok", flush=True)
    faulthandler.dump_traceback_later(args.seconds, exit=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
