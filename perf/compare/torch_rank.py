# SPDX-License-Identifier: Apache-2.0
"""Parts that each rank of compare_torch.py needs: its core, a process group for each contender, a
barrier that does not depend on a backend, and timing.

The only argument describes the measurement as JSON. Rank 0 prints rows, one JSON object per line. A
time is from the latest start of a rank to the latest end of a rank. The ranks share a clock,
because all of them run on one machine, even in namespaces.
"""

import json
import mmap
import os
import statistics
import sys
import time
from contextlib import contextmanager

from cores import cores, stay_on_a_core

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
SPEC = json.loads(sys.argv[1])
CROWDED = RANKS > len(cores())
if SPEC["bind"]:
    stay_on_a_core(RANK, RANKS)

import torch
import torch.distributed as dist

from figures import rotated

LINE = 8  # integers of 8 bytes in a cache line


class Meeting:
    """A barrier in a file that all ranks map. Each rank counts its arrivals there."""

    def __init__(self, path):
        with open(path, "r+b") as file:
            self.arrivals = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
        self.times = 0

    def meet(self):
        self.times += 1
        self.arrivals[RANK * LINE] = self.times
        for rank in range(RANKS):
            while self.arrivals[rank * LINE] < self.times:
                if CROWDED:
                    os.sched_yield()


MEETING = Meeting(SPEC["meeting"])


def new_group(contender):
    backend = contender["backend"]
    if backend == "fake":
        import torch.testing._internal.distributed.fake_pg
    return dist.new_group(backend=backend)


def begin():
    """Joins the other ranks. @return a process group for each contender, by its name."""
    torch.set_num_threads(1)
    if any(contender["backend"] == "ring" for contender in SPEC["contenders"]):
        import ring_torch
    dist.init_process_group("gloo", f"file://{SPEC['store']}", rank=RANK, world_size=RANKS)
    return {contender["name"]: new_group(contender) for contender in SPEC["contenders"]}


def end():
    """Waits for all ranks, and destroys the groups."""
    dist.barrier()
    dist.destroy_process_group()


@contextmanager
def memory(contender):
    """Makes tensors that are created within this context in the contender's kind of memory."""
    if contender.get("memory") != "shared":
        yield
        return
    import ring_torch
    with ring_torch.memory():
        yield


def spans_us(starts, ends):
    both = torch.tensor([starts, ends], dtype=torch.int64)
    dist.all_reduce(both, dist.ReduceOp.MAX)
    return ((both[1] - both[0]) / 1e3).tolist()


def time_each(call, before, count):
    """@return the median time of a call; all ranks start each call together."""
    starts, ends = [], []
    for _ in range(count):
        before()
        MEETING.meet()
        starts.append(time.perf_counter_ns())
        call()
        ends.append(time.perf_counter_ns())
    return statistics.median(spans_us(starts, ends))


def time_row(call, count):
    """@return the time of `count` calls that follow each other, divided by their number."""
    MEETING.meet()
    start = time.perf_counter_ns()
    for _ in range(count):
        call()
    return spans_us([start], [time.perf_counter_ns()])[0] / count


def in_turn(measured, rounds):
    """@param measured  functions by name, each of which gives a time. @return for each round, a
    dictionary of times by name."""
    found = []
    for number in range(rounds):
        found.append({name: measured[name]() for name in rotated(list(measured), number)})
    return found


def tell(row):
    if RANK == 0:
        print(json.dumps(row), flush=True)
