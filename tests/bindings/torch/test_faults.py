# SPDX-License-Identifier: Apache-2.0
"""Ranks that die, stop, differ or leave: each failure is an error that names it, bounded in time,
and no files remain. Usage: test_faults.py [CYCLES]"""
import os
import signal
import sys
import time
import unittest

import torch
import torch.distributed as dist

import ranks

CYCLES = 30


def reduce_for_ever():
    """Until a call fails. @return the text of its error."""
    tensor = torch.ones(1000)
    while True:
        try:
            dist.all_reduce(tensor)
            dist.all_reduce(tensor, async_op=True).wait()
        except dist.DistBackendError as error:
            return str(error)


def meet(path, rank, others):
    """Returns once this rank and the others have come here. Torch takes no part."""
    with open(f"{path}{rank}", "w"):
        pass
    while not all(os.path.exists(f"{path}{other}") for other in others):
        time.sleep(0.01)


def start_together(rank, size, store):
    """No rank has gone on to fail while another one is still in the barrier."""
    ranks.start(rank, size, store)
    dist.barrier()
    meet(f"{store}started", rank, range(size))


def dies(rank, size, store, victim):
    start_together(rank, size, store)
    if rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    text = reduce_for_ever()
    meet(f"{store}told", rank, set(range(size)) - {victim})
    return text


def stops(rank, size, store):
    start_together(rank, size, store)
    if rank == 1:
        with open(f"{store}pid", "w") as file:
            file.write(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    text = reduce_for_ever()
    if rank == 0:  # one of them: once it is gone, its number is nobody's
        with open(f"{store}pid") as file:
            os.kill(int(file.read()), signal.SIGKILL)
    return text


def shapes_differ(rank, size, store):
    ranks.start(rank, size, store)
    return ranks.error_of(dist.all_reduce, torch.ones(4 + rank))


def orders_differ(rank, size, store):
    ranks.start(rank, size, store)
    tensor = torch.ones(4)
    calls = [lambda: dist.all_reduce(tensor), lambda: dist.broadcast(tensor, 0)]

    def both():
        for call in calls if rank == 0 else reversed(calls):
            call()
            dist.barrier()
    return ranks.error_of(both)


def one_fails(rank, size, store):
    start_together(rank, size, store)
    if rank == 1:
        sys.exit(3)
    return reduce_for_ever()


def cycles(rank, size, path, count):
    store = dist.FileStore(path, size)

    def held():
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    for i in range(count):
        dist.init_process_group("ring", store=store, rank=rank, world_size=size)
        tensor = torch.ones(10)
        dist.all_reduce(tensor)
        dist.all_reduce(tensor, async_op=True).get_future().wait()
        dist.destroy_process_group()
        if i == 4:
            before = held()
    # A thread or a connection that is on its way out may still be there for a moment.
    for _ in range(200):
        if all(now <= then for now, then in zip(held(), before)):
            return None
        time.sleep(0.05)
    return f"descriptors and threads: {before} after 5 groups, {held()} after {count}"


LEAVES = """
import os, torch, torch.distributed as dist
rank, size, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("ring", f"file://{store}", rank=rank, world_size=size)
tensor = torch.ones(1 << 20)
dist.all_reduce(tensor)
future = dist.all_reduce(tensor, async_op=True).get_future().then(lambda f: f.value()[0] + 1)
work = dist.all_reduce(tensor, async_op=True)
if sys.argv[4] == "raises" and rank == 1:
    raise RuntimeError("of rank 1")
print("left", rank)
"""

WORKERS = """
import torch, torch.distributed as dist
from torch.utils.data import DataLoader
rank, size, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("ring", f"file://{store}", rank=rank, world_size=size)
total = 0
for epoch in range(2):
    for batch in DataLoader(torch.arange(64.0), 8, num_workers=2, multiprocessing_context="fork"):
        mean = batch.mean()
        dist.all_reduce(mean)
        dist.all_reduce(mean, async_op=True).get_future().wait()
        total += mean.item()
dist.destroy_process_group()
print("total", total)
"""


class Faults(unittest.TestCase):
    def tearDown(self):
        self.assertEqual(ranks.leftovers(), [])

    def test_a_rank_that_is_killed(self):
        for size, victim in ((2, 1), (3, 0), (3, 2)):
            outcomes = ranks.run(dies, size, victim, codes=(0, -signal.SIGKILL))
            for rank, outcome in enumerate(outcomes):
                if rank != victim:
                    self.assertIn(f"rank {victim}", outcome.value)
                    self.assertIn("lost", outcome.value)

    def test_a_rank_that_is_stopped(self):
        outcomes = ranks.run(stops, 3, codes=(0, -signal.SIGKILL),
                             env={"RING_PEER_TIMEOUT": "2"}.items())
        self.assertTrue(any("rank 1" in outcome.value for outcome in outcomes if outcome.value),
                        [outcome.value for outcome in outcomes])

    def test_shapes_that_differ(self):
        for outcome in ranks.run(shapes_differ):
            self.assertIn("ranks made different calls", outcome.value)
            self.assertIn("count 4", outcome.value)
            self.assertIn("count 5", outcome.value)

    def test_orders_that_differ(self):
        for outcome in ranks.run(orders_differ):
            self.assertIn("ranks made different calls", outcome.value)

    def test_a_rank_that_ends(self):
        first, *_ = ranks.run(one_fails, codes=(0, 3))
        self.assertIn("rank 1", first.value)

    def test_ends_without_destroy(self):
        with ranks.tempfile.TemporaryDirectory() as folder:
            commands = ranks.scripts(LEAVES, 2, f"{folder}/store", "leaves")
            for outcome in ranks.run_scripts(commands, codes=(0,)):
                self.assertIn("left", outcome.output)

    def test_an_exception_in_one_rank(self):
        with ranks.tempfile.TemporaryDirectory() as folder:
            commands = ranks.scripts(LEAVES, 2, f"{folder}/store", "raises")
            _, second = ranks.run_scripts(commands, codes=(0, 1))
            self.assertEqual(second.code, 1)
            self.assertIn("of rank 1", second.output)

    def test_workers_of_a_data_loader(self):
        with ranks.tempfile.TemporaryDirectory() as folder:
            commands = ranks.scripts(WORKERS, 2, f"{folder}/store")
            totals = [ranks.launched(outcome, "total") for outcome in ranks.run_scripts(commands)]
            self.assertEqual(totals[0], totals[1])
            self.assertEqual(len(totals[0]), 1)

    def test_groups_that_come_and_go(self):
        for outcome in ranks.run(cycles, 2, CYCLES):
            self.assertIsNone(outcome.value)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        CYCLES = int(sys.argv.pop(1))
    unittest.main()
