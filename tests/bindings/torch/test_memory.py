#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors in the memory that ranks share: the cache, the scope, buffers of DDP and FSDP2, forks."""
import os
import subprocess
import sys
import tempfile
import threading
import unittest

import torch
import torch.distributed as dist

import ring_torch
from ring_torch.registration import load

MIB = 1 << 20
DEADLINE = 300


def shared(bytes_):
    """A tensor of so many bytes in shared memory."""
    with ring_torch.memory():
        return torch.empty(bytes_, dtype=torch.uint8)


def stats(name):
    return ring_torch.memory_stats()[name]


def in_child(body):
    """Runs body() in a forked process. Returns its small whole number; None if it died."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        code = 255
        try:
            code = int(body())
        finally:
            os._exit(code)
    status = os.waitpid(process, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None


class Cache(unittest.TestCase):
    def setUp(self):
        ring_torch.empty_cache()
        self.assertEqual(stats("used_bytes"), 0)
        self.assertEqual(stats("reserved_bytes"), 0)

    def test_a_block_given_back_serves_the_next_of_its_size(self):
        for size in (1, 1000, MIB, MIB + 1, 25 * MIB):
            first = shared(size)
            place, allocations = first.data_ptr(), stats("allocations")
            del first
            self.assertEqual(shared(size).data_ptr(), place)
            self.assertEqual(stats("allocations"), allocations)

    def test_tensors_do_not_overlap(self):
        generator = torch.Generator().manual_seed(7)
        sizes = torch.randint(1, 3 * MIB, (60,), generator=generator).tolist()
        sizes += torch.randint(1, 5000, (200,), generator=generator).tolist()
        tensors = {}
        for i, size in enumerate(sizes):
            tensors[i] = shared(size).fill_(i % 251)
            if i % 3 == 2:
                tensors.pop(int(torch.randint(0, i, (1,), generator=generator)), None)
        for i, tensor in tensors.items():
            self.assertTrue(bool((tensor == i % 251).all()), f"tensor {i}")
            self.assertEqual(tensor.data_ptr() % 64, 0)

    def test_small_ones_share_a_segment(self):
        tensors = [shared(64) for _ in range(1000)]
        self.assertEqual(stats("reserved_bytes"), 2 * MIB)
        self.assertEqual(stats("used_bytes"), 64 * len(tensors))

    def test_a_large_block_is_cut_and_neighbours_merge(self):
        whole = shared(12 * MIB)
        place = whole.data_ptr()
        del whole
        thirds = [shared(4 * MIB) for _ in range(3)]
        self.assertEqual([third.data_ptr() - place for third in thirds], [0, 4 * MIB, 8 * MIB])
        for order in ((0, 2, 1), (1, 0, 2), (2, 1, 0)):
            for i in order:
                thirds[i] = None
            self.assertEqual(shared(12 * MIB).data_ptr(), place)
            thirds = [shared(4 * MIB) for _ in range(3)]
        self.assertEqual(stats("reserved_bytes"), 12 * MIB)

    def test_the_smallest_block_that_is_large_enough_serves(self):
        large, between, small, last = (shared(n * MIB) for n in (20, 1, 6, 1))
        place = small.data_ptr()
        del large, small
        self.assertEqual(shared(5 * MIB).data_ptr(), place)
        del between, last

    def test_empty_cache_keeps_what_is_used(self):
        kept, dropped = shared(3 * MIB), shared(5 * MIB)
        del dropped
        self.assertEqual(stats("reserved_bytes"), 8 * MIB)
        ring_torch.empty_cache()
        self.assertEqual(stats("reserved_bytes"), 3 * MIB)
        kept.fill_(1)

    def test_without_shared_memory_left_tensors_lie_in_ordinary_memory(self):
        refusals = stats("refusals")
        code = in_child_program(
            "import resource, torch, ring_torch\n"
            "ring_torch.memory_stats()\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))\n"
            "with ring_torch.memory():\n"
            "    small, large = torch.ones(1 << 20), torch.ones(1 << 25)\n"
            "assert ring_torch.is_shared(small) and not ring_torch.is_shared(large)\n"
            "assert ring_torch.memory_stats()['refusals'] == 1\n"
            "assert large.sum() == 1 << 25\n")
        self.assertEqual(code, 0)
        self.assertEqual(stats("refusals"), refusals)

    def test_threads_may_take_and_give_back_at_once(self):
        def work(value):
            for i in range(300):
                tensor = shared(1000 * (i % 50) + 1).fill_(value)
                wrong.extend(tensor[tensor != value].tolist())
        wrong = []
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((wrong, stats("used_bytes")), ([], 0))


class Scope(unittest.TestCase):
    def test_tensors_made_inside_lie_in_shared_memory_and_others_do_not(self):
        before = torch.ones(10)
        with ring_torch.memory():
            inside = torch.ones(10)
            model = torch.nn.Linear(30, 40)
        after = torch.ones(10)
        self.assertEqual([ring_torch.is_shared(t) for t in (before, inside, after)],
                         [False, True, False])
        self.assertTrue(all(ring_torch.is_shared(p) for p in model.parameters()))

    def test_scopes_nest(self):
        with ring_torch.memory():
            with ring_torch.memory():
                pass
            self.assertTrue(ring_torch.is_shared(torch.ones(3)))
        self.assertFalse(ring_torch.is_shared(torch.ones(3)))

    def test_an_exception_ends_the_scope(self):
        with self.assertRaises(KeyError), ring_torch.memory():
            raise KeyError
        self.assertFalse(ring_torch.is_shared(torch.ones(3)))

    def test_leaving_without_entering_is_refused(self):
        with self.assertRaisesRegex(RuntimeError, "not inside"):
            load().leave_memory()

    def test_it_is_of_one_thread(self):
        found = []
        with ring_torch.memory():
            thread = threading.Thread(target=lambda: found.append(
                ring_torch.is_shared(torch.ones(3))))
            thread.start()
            thread.join()
        self.assertEqual(found, [False])

    def test_storages_grow_inside_and_outside(self):
        with ring_torch.memory():
            tensor = torch.arange(5)
        tensor.resize_(100000)
        self.assertEqual(tensor[:5].tolist(), [0, 1, 2, 3, 4])
        self.assertFalse(ring_torch.is_shared(tensor))
        with ring_torch.memory():
            tensor.resize_(200000)
        self.assertTrue(ring_torch.is_shared(tensor))
        self.assertEqual(tensor[:5].tolist(), [0, 1, 2, 3, 4])

    def test_an_empty_tensor_and_a_numpy_array(self):
        with ring_torch.memory():
            empty, array = torch.empty(0), torch.ones(3).numpy()
        self.assertFalse(ring_torch.is_shared(empty))
        self.assertEqual(array.tolist(), [1, 1, 1])


class Forks(unittest.TestCase):
    def test_a_child_drops_tensors_and_the_parent_keeps_them(self):
        tensors = [shared(n).fill_(5) for n in (100, 3 * MIB)]
        used = stats("used_bytes")

        def body():
            tensors.clear()
            ring_torch.empty_cache()
            return stats("used_bytes") == used
        self.assertEqual(in_child(body), 1)
        self.assertEqual(len(tensors), 2)
        again = [shared(n).fill_(6) for n in (100, 3 * MIB)]
        self.assertTrue(all(bool((t == 5).all()) for t in tensors))
        del again

    def test_a_child_gets_ordinary_memory_and_gives_it_back(self):
        with ring_torch.memory():
            def body():
                tensor = torch.ones(100000)
                outcome = tensor.sum() == 100000 and not ring_torch.is_shared(tensor)
                del tensor
                return outcome
            self.assertEqual(in_child(body), 1)

    def test_a_fork_waits_for_threads_that_are_at_work_in_the_cache(self):
        ended = threading.Event()

        def work():
            while not ended.is_set():
                shared(3000)
        thread = threading.Thread(target=work)
        thread.start()
        try:
            for _ in range(50):
                tensor = shared(2000)

                def body():
                    nonlocal tensor
                    del tensor
                    return stats("reserved_bytes") > 0
                self.assertEqual(in_child(body), 1)
        finally:
            ended.set()
            thread.join()


def in_child_program(text):
    return subprocess.run([sys.executable, "-c", text], timeout=DEADLINE).returncode


# ---- Programs of ranks ---------------------------------------------------------------------------

def model_of(width=300):
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(),
                               torch.nn.Linear(width, width))


def rank_allocates():
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    assert backend.supports_tensor_alloc(torch.device("cpu"))
    tensor = backend.allocate_tensor(1000, dtype=torch.bfloat16, device=torch.device("cpu"))
    assert ring_torch.is_shared(tensor)
    assert tensor.shape == (1000,) and tensor.dtype == torch.bfloat16
    tensor.fill_(dist.get_rank() + 1)
    dist.all_reduce(tensor)
    assert bool((tensor == 3).all())


def rank_runs_ddp():
    seen = []

    def hook(_, bucket):
        seen.append(ring_torch.is_shared(bucket.buffer()))
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda future: future.value()[0] / dist.get_world_size())

    model = torch.nn.parallel.DistributedDataParallel(model_of(), gradient_as_bucket_view=True)
    model.register_comm_hook(None, hook)
    for _ in range(3):
        model(torch.ones(4, 300)).sum().backward()
    assert seen and all(seen), seen
    assert all(ring_torch.is_shared(p.grad) for p in model.parameters())


def rank_runs_fsdp2():
    from torch.distributed.fsdp import FSDPModule, fully_shard
    model = model_of(1000)
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(model)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_allocate_memory_from_process_group_for_comm(True)
    reserved, requests = [], []
    for _ in range(6):
        model(torch.ones(4, 1000)).sum().backward()
        reserved.append(stats("reserved_bytes"))
        requests.append(stats("requests"))
    assert requests[-1] > requests[1] > 0, requests
    assert reserved[1:] == reserved[1:2] * 5, reserved


class Squares(torch.utils.data.Dataset):
    """Items for workers that drop what they inherited."""

    def __init__(self, inherited):
        self.inherited = inherited

    def __len__(self):
        return 40

    def __getitem__(self, i):
        self.inherited.clear()
        return torch.full((10,), float(i * i))


def rank_loads_data_with_forked_workers():
    with ring_torch.memory():
        model = torch.nn.parallel.DistributedDataParallel(model_of(10))
        optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    for epoch in range(2):
        inherited = [p for p in model.parameters()] + [p.grad for p in model.parameters()]
        inherited.append(shared(1000))
        loader = torch.utils.data.DataLoader(
            Squares(inherited), batch_size=4, num_workers=2, multiprocessing_context="fork")
        total = 0
        for batch in loader:
            total += batch[:, 0].sum().item()
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
        assert total == sum(i * i for i in range(40)), total
        assert len(inherited) == 9
    assert all(ring_torch.is_shared(p) for p in model.parameters())


def run_as_rank(body, rank, size, store):
    dist.init_process_group("ring", init_method=f"file://{store}", rank=rank, world_size=size)
    globals()[body]()
    dist.destroy_process_group()


class Ranks(unittest.TestCase):
    def run_ranks(self, body, size=2):
        with tempfile.TemporaryDirectory() as folder:
            ranks = [subprocess.Popen([sys.executable, __file__, "--rank", body.__name__, str(rank),
                                       str(size), f"{folder}/store"]) for rank in range(size)]
            try:
                codes = [rank.wait(DEADLINE) for rank in ranks]
            finally:
                for rank in ranks:
                    rank.kill()
        self.assertEqual(codes, [0] * size)

    def test_the_backend_allocates_shared_tensors(self):
        self.run_ranks(rank_allocates)

    def test_ddp_reduces_its_buckets_in_place(self):
        self.run_ranks(rank_runs_ddp)

    def test_fsdp2_uses_its_buffers_again_in_each_step(self):
        self.run_ranks(rank_runs_fsdp2)

    def test_forked_workers_of_a_data_loader(self):
        self.run_ranks(rank_loads_data_with_forked_workers)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        run_as_rank(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        unittest.main()
