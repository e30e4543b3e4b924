# SPDX-License-Identifier: Apache-2.0
"""One rank of compare_torch.py: times collectives of torch.distributed by size, and a small call.

A size is the bytes of the larger buffer. Inputs are rewritten before each call, outside the timing,
and all values of the result are checked once.
"""

import torch
import torch.distributed as dist

from torch_rank import RANK, RANKS, SPEC, begin, end, in_turn, memory, tell, time_each, time_row

IN_A_ROW = 500


class Case:
    """One collective and its tensors. The input `given` is filled with this rank's number plus 1;
    after the call each block of the output `got` must have its value of the list `wanted`."""

    def __init__(self, call, given, got, wanted):
        self.call, self.given, self.got, self.wanted = call, given, got, wanted

    def before(self):
        self.given.fill_(RANK + 1)

    def check(self):
        blocks = self.got.view(len(self.wanted), -1)
        for block, value in zip(blocks, self.wanted):
            if not bool((block == value).all()):
                raise SystemExit(f"rank {RANK}: {SPEC['op']}: wrong values")


def all_reduce(count, group):
    x = torch.empty(count)
    return Case(lambda: dist.all_reduce(x, group=group), x, x, [RANKS * (RANKS + 1) / 2])


def all_gather_into_tensor(count, group):
    x, y = torch.empty(count // RANKS), torch.empty(count)
    return Case(lambda: dist.all_gather_into_tensor(y, x, group), x, y, range(1, RANKS + 1))


def reduce_scatter_tensor(count, group):
    x, y = torch.empty(count), torch.empty(count // RANKS)
    return Case(lambda: dist.reduce_scatter_tensor(y, x, group=group), x, y,
                [RANKS * (RANKS + 1) / 2])


def all_to_all_single(count, group):
    x, y = torch.empty(count), torch.empty(count)
    return Case(lambda: dist.all_to_all_single(y, x, group=group), x, y, range(1, RANKS + 1))


def broadcast(count, group):
    x = torch.empty(count)
    return Case(lambda: dist.broadcast(x, 0, group), x, x, [1])


def barrier(count, group):
    x = torch.empty(1)
    return Case(lambda: dist.barrier(group), x, x, [RANK + 1])


CASES = {case.__name__: case for case in (
    all_reduce, all_gather_into_tensor, reduce_scatter_tensor, all_to_all_single, broadcast,
    barrier)}


def calls(size):
    return max(3, min(SPEC["calls"], 2**27 // size))


def measure(make, size, groups):
    """@return the times by contender of each round, for one size."""
    count, cases = max(size // 4 // RANKS, 1) * RANKS, {}
    for contender in SPEC["contenders"]:
        with memory(contender):
            case = make(count, groups[contender["name"]])
        for _ in range(2):
            case.before()
            case.call()
        case.check()
        cases[contender["name"]] = case
    return in_turn({name: lambda case=case: time_each(case.call, case.before, calls(size))
                    for name, case in cases.items()}, SPEC["rounds"])


def measure_calls(groups):
    sizes = SPEC["sizes"] if SPEC["op"] != "barrier" else [4]
    for size in sizes:
        tell({"op": SPEC["op"], "bytes": size,
              "rounds": measure(CASES[SPEC["op"]], size, groups)})


def measure_cost(groups):
    """Times a call of 4 bytes: a blocking one, and one that is started and waited for."""
    ways = {}
    for contender in SPEC["contenders"]:
        with memory(contender):
            x = torch.zeros(1)
        group, name = groups[contender["name"]], contender["name"]
        ways[name, "sync"] = lambda x=x, group=group: dist.all_reduce(x, group=group)
        ways[name, "async"] = \
            lambda x=x, group=group: dist.all_reduce(x, group=group, async_op=True).wait()
    for call in ways.values():
        time_row(call, 10)
    rounds = in_turn({way: lambda call=call: time_row(call, IN_A_ROW)
                      for way, call in ways.items()}, SPEC["rounds"])
    for kind in "sync", "async":
        tell({"way": kind, "rounds": [{name: times[name, of] for name, of in times if of == kind}
                                      for times in rounds]})


groups_by_name = begin()
{"calls": measure_calls, "call_cost": measure_cost}[SPEC["part"]](groups_by_name)
end()
