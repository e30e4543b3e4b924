#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All operations of torch.distributed over "ring", against values that each rank computes alone:
every type, reduction and layout, drawn by seeds. Usage: test_operations.py [RANKS...]"""
import functools
import itertools
import multiprocessing
import os
import sys
import tempfile
import traceback

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

SECONDS = 120
Op = dist.ReduceOp
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32,
            torch.int64, torch.uint64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn,
          torch.float8_e5m2]
COMPLEX = [torch.complex64, torch.complex128]
OTHERS = [torch.bool, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]


def draw(rank, shape, dtype, salt=0):
    """The input of `rank`: small integers, so that sums are exact in every type."""
    generator = torch.Generator().manual_seed(1000 * salt + rank)
    top = 2 if dtype == torch.bool else 4
    values = torch.randint(0, top, shape, generator=generator)
    return values.to(torch.float32).to(dtype) if dtype.is_floating_point else values.to(dtype)


def wide(tensor):
    """The same values in a type that every operation of the oracle knows."""
    if tensor.dtype.is_complex:
        return tensor.to(torch.complex128)
    if tensor.dtype.is_floating_point:
        return tensor.to(torch.float64)
    return tensor.to(torch.int64)


def same(got, want):
    got, want = wide(got), wide(want)
    assert got.shape == want.shape, f"got {got.shape}, want {want.shape}"
    wrong = got != want
    assert not wrong.any(), f"got {got[wrong][:5]}, want {want[wrong][:5]} of {wrong.sum()} places"


COMBINE = {
    Op.SUM: torch.add, Op.PRODUCT: torch.mul, Op.MIN: torch.minimum, Op.MAX: torch.maximum,
    Op.BAND: torch.bitwise_and, Op.BOR: torch.bitwise_or, Op.BXOR: torch.bitwise_xor,
}


def reduced(inputs, op):
    """The reduction of all ranks' inputs, computed here."""
    dtype = inputs[0].dtype
    if op == Op.AVG:
        total = functools.reduce(torch.add, map(wide, inputs))
        if dtype.is_complex:  # of its parts: a division by a complex number rounds otherwise
            return torch.view_as_complex(torch.view_as_real(total) / len(inputs)).to(dtype)
        how = "trunc" if dtype in INTEGERS else None
        return torch.div(total, len(inputs), rounding_mode=how).to(dtype)
    result = functools.reduce(COMBINE[op], map(wide, inputs))
    return result != 0 if dtype == torch.bool else result.to(dtype)


def reductions():
    """Each type with each reduction that it has."""
    yield from itertools.product(INTEGERS, [*COMBINE, Op.AVG])
    yield from itertools.product(FLOATS, [Op.SUM, Op.PRODUCT, Op.MIN, Op.MAX, Op.AVG])
    yield from itertools.product(COMPLEX, [Op.SUM, Op.AVG])
    yield from itertools.product([torch.bool], [op for op in COMBINE if op != Op.BXOR])


def layouts(tensor):
    """The same values in memory that lies differently: [numel] dense, transposed, with gaps."""
    yield tensor.clone()
    yield tensor.t().contiguous().t()
    spread = torch.zeros(2 * tensor.shape[0], tensor.shape[1], dtype=tensor.dtype)
    spread[::2].copy_(tensor)
    yield spread[::2]


def refused(text, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except (RuntimeError, ValueError, TypeError) as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"not refused: {text}")


def case_all_reduce(rank, ranks):
    for (dtype, op), count in itertools.product(reductions(), (1, 700)):
        inputs = [draw(r, (count,), dtype) for r in range(ranks)]
        own = inputs[rank].clone()
        assert dist.all_reduce(own, op) is None
        same(own, reduced(inputs, op))


def case_layouts(rank, ranks):
    inputs = [draw(r, (6, 4), torch.float32) for r in range(ranks)]
    want = reduced(inputs, Op.SUM)
    for own in layouts(inputs[rank]):
        dist.all_reduce(own)
        same(own, want)
    for own in layouts(inputs[rank]):
        out = torch.empty(ranks * 6, 4)
        dist.all_gather_into_tensor(out, own)
        same(out, torch.cat(inputs))
        parts = [torch.empty(4, 6).t() for _ in range(ranks)]
        dist.all_gather(parts, own)
        same(torch.cat(parts), torch.cat(inputs))
        dist.broadcast(own, 0)
        same(own, inputs[0])


def case_layouts_that_differ(rank, ranks):
    """Ranks store the same matrix by rows, by columns, or with gaps; images by channels, or not."""
    inputs = [draw(r, (6, 4), torch.float32) for r in range(ranks)]
    want = reduced(inputs, Op.SUM)

    def own(turn):
        return [*layouts(inputs[rank])][(rank + turn) % 3]
    for turn in range(3):
        tensor = own(turn)
        dist.all_reduce(tensor)
        same(tensor, want)
        tensor = own(turn)
        dist.reduce(tensor, turn % ranks)
        same(tensor, want if rank == turn % ranks else inputs[rank])
        tensors = [own(turn), own(turn + 1) * 2]
        with dist._coalescing_manager():
            for tensor in tensors:
                dist.all_reduce(tensor)
        same(torch.stack(tensors), torch.stack([want, want * 2]))
        tensors = [own(turn), own(turn + 1)]
        functional_sums = functional.all_reduce_coalesced(tensors, "sum", dist.group.WORLD)
        same(torch.stack([*functional_sums]), torch.stack([want, want]))
    images = [draw(r, (2, 3, 4, 5), torch.float32) for r in range(ranks)]
    order = torch.channels_last if rank == 0 else torch.contiguous_format
    tensor = images[rank].clone(memory_format=order)
    dist.all_reduce(tensor)
    same(tensor, reduced(images, Op.SUM))
    # The outputs are the parts of one tensor on rank 0 alone, where the input is one of them, too.
    parts = [*torch.zeros(ranks, 6, 4).unbind(0)] if rank == 0 else [torch.zeros(6, 4)
                                                                     for _ in range(ranks)]
    parts[rank].copy_(inputs[rank])
    dist.all_gather(parts, parts[rank] if rank == 0 else inputs[rank])
    same(torch.stack(parts), torch.stack(inputs))


def case_views_that_negate(rank, ranks):
    """torch resolves these views before it calls a backend; callers of the backend may not."""
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    values = [1 - 2j, 3 + 1j]
    for view, want in ((torch.tensor(values).conj().imag, [2.0, -1.0]),
                       (torch.tensor(values).conj(), [1 + 2j, 3 - 1j])):
        assert view.is_neg() or view.is_conj()
        want = torch.tensor(want)
        own = view if rank == 0 else want.clone()
        backend.allreduce([own]).wait()
        same(own, want * ranks)


def case_premultiplied(rank, ranks):
    factor = 0.5
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        inputs = [draw(r, (33,), dtype) for r in range(ranks)]
        own = inputs[rank].clone()
        dist.all_reduce(own, dist.ReduceOp.PREMUL_SUM(factor) if callable(Op.PREMUL_SUM)
                        else dist._make_nccl_premul_sum(factor))
        same(own, reduced([wide(t) * factor for t in inputs], Op.SUM).to(dtype))


def case_reduce(rank, ranks):
    for root, (dtype, op) in enumerate(reductions()):
        inputs = [draw(r, (40,), dtype) for r in range(ranks)]
        own = inputs[rank].clone()
        dist.reduce(own, root % ranks, op)
        same(own, reduced(inputs, op) if rank == root % ranks else inputs[rank])


def case_reduce_scatter(rank, ranks):
    for dtype, op in reductions():
        inputs = [draw(r, (ranks * 5, 3), dtype) for r in range(ranks)]
        if dtype.is_complex:
            continue  # c10d asks for a view as real there
        want = reduced(inputs, op)[5 * rank:5 * rank + 5]
        out = torch.empty(5, 3, dtype=dtype)
        dist.reduce_scatter_tensor(out, inputs[rank], op)
        same(out, want)
        dist.reduce_scatter(out, [*inputs[rank].clone().chunk(ranks)], op)
        same(out, want)


def case_uneven(rank, ranks):
    lengths = [3 * r for r in range(ranks)]
    inputs = [[draw(r, (n,), torch.float32, salt=n) for n in lengths] for r in range(ranks)]
    out = torch.empty(lengths[rank])
    dist.reduce_scatter(out, inputs[rank])
    same(out, reduced([inputs[r][rank] for r in range(ranks)], Op.SUM))
    parts = [torch.empty(n) for n in lengths]
    dist.all_gather(parts, draw(rank, (lengths[rank],), torch.float32))
    for r, part in enumerate(parts):
        same(part, draw(r, (lengths[r],), torch.float32))


def case_moves(rank, ranks):
    for root, dtype in enumerate(INTEGERS + FLOATS + COMPLEX + OTHERS):
        root %= ranks
        inputs = [draw(r, (4, 3), dtype, salt=root) for r in range(ranks)]
        own = inputs[rank].clone()
        dist.broadcast(own, root)
        same(own, inputs[root])
        out = torch.empty(ranks * 4, 3, dtype=dtype)
        dist.all_gather_into_tensor(out, inputs[rank])
        same(out, torch.cat([*map(wide, inputs)]))
        parts = [torch.empty(4, 3, dtype=dtype) for _ in range(ranks)]
        dist.gather(inputs[rank], parts if rank == root else None, root)
        if rank == root:
            same(torch.stack([*map(wide, parts)]), torch.stack([*map(wide, inputs)]))
        out = torch.empty(4, 3, dtype=dtype)
        dist.scatter(out, [t + 0 if dtype in INTEGERS[:1] else t for t in inputs]
                     if rank == root else None, root)
        same(out, inputs[rank])


def case_all_to_all(rank, ranks):
    for dtype in (torch.float32, torch.int64, torch.complex64, torch.bool):
        inputs = [draw(r, (ranks * 2, 3), dtype) for r in range(ranks)]
        out = torch.empty(ranks * 2, 3, dtype=dtype)
        dist.all_to_all_single(out, inputs[rank])
        same(out, torch.cat([t.chunk(ranks)[rank] for t in inputs]))
        outs = [torch.empty(2, 3, dtype=dtype) for _ in range(ranks)]
        dist.all_to_all(outs, [*inputs[rank].chunk(ranks)])
        same(torch.cat(outs), torch.cat([t.chunk(ranks)[rank] for t in inputs]))
    # Rank r gives r + s rows to rank s.
    gives = [[r + s for s in range(ranks)] for r in range(ranks)]
    inputs = [draw(r, (sum(gives[r]), 2), torch.float32) for r in range(ranks)]
    gets = [gives[r][rank] for r in range(ranks)]
    out = torch.empty(sum(gets), 2)
    dist.all_to_all_single(out, inputs[rank], gets, gives[rank])
    same(out, torch.cat([inputs[r].split(gives[r])[rank] for r in range(ranks)]))


def case_empty(rank, ranks):
    for shape in ((0,), (0, 3)):
        empty = torch.empty(shape)
        dist.all_reduce(empty)
        dist.broadcast(empty, 0)
        dist.all_gather([torch.empty(shape) for _ in range(ranks)], empty)
        dist.all_gather_into_tensor(torch.empty(shape), empty)
        dist.reduce_scatter_tensor(torch.empty(shape), empty)
        dist.all_to_all_single(torch.empty(shape), empty)
        dist.gather(empty, [torch.empty(shape) for _ in range(ranks)] if rank == 0 else None)
        dist.scatter(empty, [torch.empty(shape) for _ in range(ranks)] if rank == 0 else None)


def case_messages(rank, ranks):
    if ranks == 1:
        return
    # Tags out of order, each message longer than what is sent ahead, then any source.
    peer = rank ^ 1
    if peer < ranks:
        sent = [draw(rank, (100000,), torch.float32, salt=tag) for tag in range(3)]
        works = [dist.isend(t, peer, tag=tag) for tag, t in enumerate(sent)]
        got = [torch.empty(100000) for _ in range(3)]
        for tag in (2, 0, 1):
            dist.recv(got[tag], peer, tag=tag)
        for tag in range(3):
            same(got[tag], draw(peer, (100000,), torch.float32, salt=tag))
        for work in works:
            work.wait()
    dist.barrier()
    if rank == 0:
        seen = set()
        for _ in range(ranks - 1):
            got = torch.empty(2)
            seen.add(dist.recv(got))
            same(got, torch.full((2,), float(max(seen, key=lambda r: r == got[0]))))
        assert seen == set(range(1, ranks)), seen
    else:
        dist.send(torch.full((2,), float(rank)), 0)


def case_batches(rank, ranks):
    if ranks == 1:
        return
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    got = torch.empty(100000)
    operations = [dist.P2POp(dist.isend, torch.full((100000,), float(rank)), right),
                  dist.P2POp(dist.irecv, got, left)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    same(got, torch.full((100000,), float(left)))
    tensors = [torch.full((n,), float(rank)) for n in (3, 0, 500)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    for tensor in tensors:
        same(tensor, torch.full_like(tensor, ranks * (ranks - 1) / 2))


def case_works(rank, ranks):
    tensors = [torch.full((1000,), float(rank)) for _ in range(20)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    futures = [work.get_future() for work in works[::2]]
    doubled = [f.then(lambda f: f.value()[0] * 2) for f in futures]
    total = ranks * (ranks - 1) / 2
    for work in works[1::2]:
        work.wait()
        assert work.is_completed() and work.is_success()
    for future in doubled:
        same(future.wait(), torch.full((1000,), 2 * total))
    for tensor in tensors:
        same(tensor, torch.full((1000,), total))
    spread = torch.ones(10, 2)[:, 0]
    dist.all_reduce(spread, async_op=True).get_future().wait()
    same(spread, torch.full((10,), float(ranks)))


def case_functional(rank, ranks):
    group = dist.group.WORLD
    own = draw(rank, (8, 2), torch.float32)
    all_of = [draw(r, (8, 2), torch.float32) for r in range(ranks)]
    same(functional.all_reduce(own, "sum", group), reduced(all_of, Op.SUM))
    same(functional.all_gather_tensor(own, 0, group), torch.cat(all_of))
    tall = [draw(r, (ranks * 2, 2), torch.float32) for r in range(ranks)]
    same(functional.reduce_scatter_tensor(tall[rank], "sum", 0, group),
         reduced(tall, Op.SUM).chunk(ranks)[rank])
    for got, want in zip(functional.all_reduce_coalesced([own, own * 2], "sum", group), (1, 2)):
        same(got, reduced(all_of, Op.SUM) * want)


def case_objects(rank, ranks):
    everything = [None] * ranks
    dist.all_gather_object(everything, {"rank": rank, "text": "x" * rank})
    assert everything == [{"rank": r, "text": "x" * r} for r in range(ranks)]
    values = [rank, "of rank 0"] if rank == 0 else [None, None]
    dist.broadcast_object_list(values, 0)
    assert values == [0, "of rank 0"]
    got = [None]
    dist.scatter_object_list(got, [*range(10, 10 + ranks)] if rank == 0 else None)
    assert got == [10 + rank]


def case_sparse(rank, ranks):
    def of(r):
        return torch.sparse_coo_tensor([[r, 2]], [1.0, float(r)], (ranks + 3,))
    own = of(rank)
    dist.all_reduce(own)
    same(own.to_dense(), sum(of(r).to_dense() for r in range(ranks)))
    if ranks == 1:
        return
    for own in (torch.sparse_coo_tensor([[0]], [1.0], (4 + rank % 2,)),
                torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2)) if rank == 0 else
                torch.sparse_coo_tensor([[0]], [[1.0, 1.0]], (2, 2))):
        refused("tensors that differ", dist.all_reduce, own)


def case_refusals(rank, ranks):
    refused("no average", dist.all_reduce, torch.ones(2, dtype=torch.bool), Op.AVG)
    refused("non-integral", dist.all_reduce, torch.ones(2), Op.BAND)
    refused("PREMUL_SUM scales floats", dist.all_reduce, torch.ones(2, dtype=torch.int32),
            dist._make_nccl_premul_sum(2.0))
    refused("cannot be reduced", dist.all_reduce, torch.ones(2).to(torch.float8_e4m3fnuz))
    refused("a sparse all_reduce supports only SUM", dist.all_reduce,
            torch.ones(2).to_sparse(), Op.MAX)
    refused("not 2 times" if ranks == 2 else "times", dist.all_gather_into_tensor,
            torch.ones(ranks * 2 + 1), torch.ones(2))
    dist.barrier()  # nothing was sent, and the group goes on


CASES = {name[5:]: case for name, case in list(globals().items()) if name.startswith("case_")}


def run_rank(rank, ranks, folder):
    torch.set_num_threads(1)
    dist.init_process_group("ring", f"file://{folder}/store", rank=rank, world_size=ranks)
    for name, case in CASES.items():
        try:
            case(rank, ranks)
        except BaseException:
            print(f"case {name}, rank {rank} of {ranks}:\n{traceback.format_exc()}", flush=True)
            os._exit(1)
    dist.destroy_process_group()


def run(ranks):
    """@return whether all cases held on all ranks."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=run_rank, args=(rank, ranks, folder), daemon=True)
                     for rank in range(ranks)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(SECONDS)
            if process.exitcode is None:
                print(f"{ranks} ranks: not over after {SECONDS} s")
                process.kill()
    held = all(process.exitcode == 0 for process in processes)
    print(f"{ranks} ranks: {len(CASES)} cases {'held' if held else 'did NOT hold'}")
    return held


if __name__ == "__main__":
    sys.exit(not all([run(int(ranks)) for ranks in sys.argv[1:] or ["1", "2", "3"]]))
