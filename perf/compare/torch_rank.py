# SPDX-License-Identifier: Apache-2.0
"""One rank of compare_torch.py: its core, a group for each contender, a meeting place that belongs
to no backend, and times.

What is measured comes as JSON in the only argument; rank 0 prints rows, a JSON object a line. A
time is from the latest start to the latest end over all ranks: they share a clock, since all of
them run on one machine, in namespaces too.
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

LINE = 8  # numbers of 8 bytes in a cache line


class Meeting:
    """In a file that all ranks map: each notes how often it came."""

    def __init__(self, path):
        with open(path, "r+b") as file:
            self.came = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
        self.times = 0

    def meet(self):
        self.times += 1
        self.came[RANK * LINE] = self.times
        for rank in range(RANKS):
            while self.came[rank * LINE] < self.times:
                if CROWDED:
                    os.sched_yield()


MEETING = Meeting(SPEC["meeting"])


def new_group(contender):
    backend = contender["backend"]
    if backend == "fake":
        import torch.testing._internal.distributed.fake_pg
    return dist.new_group(backend=backend)


def begin():
    """A group by contender's name."""
    torch.set_num_threads(1)
    if any(contender["backend"] == "ring" for contender in SPEC["contenders"]):
        import ring_torch
    dist.init_process_group("gloo", f"file://{SPEC['store']}", rank=RANK, world_size=RANKS)
    return {contender["name"]: new_group(contender) for contender in SPEC["contenders"]}


def end():
    """Ranks leave together."""
    dist.barrier()
    dist.destroy_process_group()


@contextmanager
def memory(contender):
    """Where tensors that are made within lie."""
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
    """The median of calls, all ranks starting each together."""
    starts, ends = [], []
    for _ in range(count):
        before()
        MEETING.meet()
        starts.append(time.perf_counter_ns())
        call()
        ends.append(time.perf_counter_ns())
    return statistics.median(spans_us(starts, ends))


def time_row(call, count):
    """A call's share of many in a row."""
    MEETING.meet()
    start = time.perf_counter_ns()
    for _ in range(count):
        call()
    return spans_us([start], [time.perf_counter_ns()])[0] / count


def in_turn(measured, rounds):
    """@param measured  functions by name. @return one dictionary of times a round"""
    found = []
    for number in range(rounds):
        found.append({name: measured[name]() for name in rotated(list(measured), number)})
    return found


def tell(row):
    if RANK == 0:
        print(json.dumps(row), flush=True)
