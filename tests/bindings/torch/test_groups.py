# SPDX-License-Identifier: Apache-2.0
"""Groups of other ranks: new_group, split, shrink, merge, meshes; what a group says of itself."""
import contextlib
import datetime
import locale
import os
import signal
import subprocess
import tempfile
import unittest
import warnings

import torch
import torch.distributed as dist

import ranks

WORLD = dist.distributed_c10d._get_default_group
CPU = torch.device("cpu")
SECOND = datetime.timedelta(seconds=1)


def total(group, value):
    tensor = torch.tensor([float(value)])
    dist.all_reduce(tensor, group=group)
    return tensor.item()


def many_and_nested_groups(rank, size, store):
    with ranks.group(rank, size, store):
        evens = dist.new_group([0, 2])
        if rank in (0, 2):
            # Of the members alone; torch names it by how many groups a rank has.
            inner = dist.new_group([2, 0], use_local_synchronization=True)
            assert total(inner, 5) == 10
            assert dist.get_process_group_ranks(inner) == [0, 2]
            dist.destroy_process_group(inner)
        for _ in range(20):  # of overlapping ranks, all alive at once
            first = dist.new_group([0, 1])
            last = dist.new_group([size - 1, 0])
            if rank in (0, 1):
                assert total(first, rank) == 1
            if rank in (0, size - 1):
                assert total(last, rank) == size - 1
        if rank in (0, 2):
            assert total(evens, rank) == 2
        assert total(None, rank) == size * (size - 1) / 2


def split_groups(rank, size, store):
    with ranks.group(rank, size, store):
        backend = WORLD()._get_backend(CPU)
        assert backend.supports_splitting
        half = WORLD().split_group([0, 1] if rank < 2 else [2, 3], timeout=30 * SECOND,
                                   group_name=f"half{rank // 2}", group_desc="a half")
        assert half.size() == 2 and half.rank() == rank % 2
        assert half.group_name == f"half{rank // 2}" and half.group_desc == "a half"
        tensor = torch.tensor([float(rank)])
        half.allreduce([tensor]).wait()
        assert tensor.item() == (1 if rank < 2 else 5)
        odd = WORLD().split_group([3, 1], timeout=30 * SECOND, group_name="odd")
        assert (odd is None) == (rank not in (1, 3))
        if odd is not None:  # torch sorts the list
            assert odd.rank() == (1, 3).index(rank)
            odd.barrier().wait()
        assert total(None, 1) == size


# Lists that overlap without being equal.
def split_wrongly(rank, size, store):
    with ranks.group(rank, size, store):
        try:
            WORLD().split_group([0, 1] if rank < 2 else [0, 1, 2], timeout=30 * SECOND,
                                group_name=f"wrong{rank}")
        except RuntimeError as error:
            text = str(error)
        else:
            raise AssertionError("no error")
        assert total(None, 1) == size
        return text


def shrink(rank, size, store):
    ranks.start(rank, size, store)
    if rank == 1:  # lives on, and takes no part
        dist.distributed_c10d._get_default_store().wait(["shrunk"])
    else:
        store = dist.distributed_c10d._get_default_store()
        smaller = dist.shrink_group([1])
        assert dist.get_world_size() == size - 1
        assert total(smaller, rank) == sum(range(size)) - 1
        assert total(None, 1) == size - 1
        store.set("shrunk", "1")
    dist.destroy_process_group()


def merge(rank, size, path):
    store = dist.FileStore(path, size)
    alone = dist.ProcessGroup(dist.PrefixStore(f"alone{rank}/", store), rank, size)
    import ring_torch.registration
    backend = ring_torch.registration.load().ProcessGroupRing(
        dist.PrefixStore(f"alone{rank}/", store), 0, 1, 30 * SECOND)
    alone._register_backend(CPU, dist.ProcessGroup.BackendType.CUSTOM, backend)
    both = alone.merge_remote_group(store, size, 30 * SECOND, group_name="both")
    tensor = torch.tensor([float(rank)])
    both.allreduce([tensor]).wait()
    assert tensor.item() == size * (size - 1) / 2
    # torch numbers the ranks of a merged group as they come.
    found = [torch.empty(1) for _ in range(size)]
    both.allgather([found], [torch.tensor([float(both.rank())])]).wait()
    assert [int(each) for each in found] == list(range(size)), found
    assert both.size() == size, both.size()


def mesh(rank, size, store):
    with ranks.group(rank, size, store):
        from torch.distributed.device_mesh import init_device_mesh
        plane = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
        assert dist.get_backend(plane.get_group("data")) == "ring"
        assert total(plane.get_group("model"), rank) == (1 if rank < 2 else 5)
        assert total(plane.get_group("data"), rank) == (2 if rank % 2 == 0 else 4)
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor
        whole = torch.arange(32.0).view(8, 4)
        part = distribute_tensor(whole, plane, [Shard(0), Shard(1)])
        assert part.to_local().shape == (4, 2)
        assert torch.equal(part.redistribute(plane, [Replicate(), Replicate()]).to_local(), whole)


def names_of_backends(rank, size, store):
    for config in ("cpu:ring", "cpu:ring,cuda:nccl"):
        if config.endswith("nccl") and not dist.is_nccl_available():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with ranks.group(rank, size, f"{store}{config}", backend=config):
                assert total(None, 1) == size
                assert WORLD()._get_backend(CPU).name() == "ring"
    dist.Backend.default_device_backend_map["cpu"] = "ring"
    with ranks.group(rank, size, f"{store}default", backend=None):
        assert total(None, 1) == size
        assert WORLD()._get_backend(CPU).name() == "ring"


def says_of_itself(rank, size, store):
    with ranks.group(rank, size, store, seconds=50):
        backend = WORLD()._get_backend(CPU)
        assert dist.get_backend() == "ring" and backend.name() == "ring"
        assert (backend.rank(), backend.size()) == (rank, size)
        before = backend._get_sequence_number_for_group()
        dist.all_reduce(torch.ones(1))
        dist.barrier()
        assert backend._get_sequence_number_for_group() == before + 2
        named = dist.new_group([0, 1], group_desc="two of them")
        if rank < 2:
            assert named.group_desc == "two of them"


def again_on_one_store(rank, size, path):
    store = dist.FileStore(path, size)
    for i in range(10):
        dist.init_process_group("ring", store=store, rank=rank, world_size=size,
                                timeout=60 * SECOND)
        assert total(None, i) == i * size
        dist.destroy_process_group()


def start_in_store(rank, size, port):
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    dist.init_process_group("ring", store=store, rank=rank, world_size=size, timeout=60 * SECOND)


# The store that outlives attempts. Its thread would be a danger to a process that forks.
SERVER = """
import sys, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
print(store.port, flush=True)
sys.stdin.read()
"""


# An attempt in which an alarm ends all ranks. Rank `absent` does not come to the first group, or
# with `second` not to the second one.
def attempt_in_part(rank, size, _, port, absent, second, seconds):
    signal.setitimer(signal.ITIMER_REAL, seconds)
    with contextlib.suppress(RuntimeError):  # another rank may end first
        if second:
            start_in_store(rank, size, port)
        if rank != absent:
            dist.new_group(range(size)) if second else start_in_store(rank, size, port)
    signal.pause()


def attempt(rank, size, _, port):
    start_in_store(rank, size, port)
    assert total(None, 1) == size
    assert total(dist.new_group(range(size)), rank) == size * (size - 1) / 2
    dist.destroy_process_group()


# All attempts under torchrun have one store. Rank 1 ends before the first group, then before the
# second group, and at last rank 0, which the others wait for, ends there.
RESTARTED = """
import os, sys, torch, torch.distributed as dist
attempt, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(os.environ["RANK"])
if attempt == 0 and rank == 1:
    sys.exit(1)
dist.init_process_group("ring")
if attempt in (1, 2) and rank == 2 - attempt:
    os._exit(1)
pair = dist.new_group([0, 1])
tensor = torch.ones(3)
dist.all_reduce(tensor, group=pair)
print(f"attempt {attempt}: {tensor.tolist()}\\n", end="", flush=True)
dist.destroy_process_group()
"""

COMMA = """LC_NUMERIC
decimal_point ","
thousands_sep "."
grouping 3;3
END LC_NUMERIC
"""


# Rank 0 has a locale with a decimal comma before the group is made, the others have it afterwards.
def numbers_with_a_comma(rank, size, store, folder):
    os.environ["LOCPATH"] = folder
    if rank == 0:
        locale.setlocale(locale.LC_NUMERIC, "comma")
    with ranks.group(rank, size, store, seconds=1799.5):
        locale.setlocale(locale.LC_NUMERIC, "comma")
        assert locale.localeconv()["decimal_point"] == ","
        assert total(None, 1) == size
        group = dist.new_group(range(size), timeout=1234.25 * SECOND)
        assert total(group, 1) == size
        group.monitored_barrier(60.5 * SECOND)


def very_long_time_outs(rank, size, store, days):
    long = datetime.timedelta(days=days)
    with ranks.group(rank, size, store, seconds=long.total_seconds()):
        assert total(None, 1) == size
        assert dist.all_reduce(torch.ones(1), async_op=True).wait(long)
        assert total(dist.new_group(range(size), timeout=long), 1) == size
        WORLD().monitored_barrier(long)


def monitored(rank, size, path):
    with ranks.group(rank, size, path):
        store = dist.distributed_c10d._get_default_store()
        if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 14):
            dist.monitored_barrier(timeout=30 * SECOND)
        else:  # torch looks at the name of the backend
            try:
                dist.monitored_barrier(timeout=30 * SECOND)
            except ValueError as error:
                assert "only implemented for GLOO" in str(error), error
            else:
                raise AssertionError("docs/pytorch.md says that this needs torch 2.14")
        WORLD().monitored_barrier(30 * SECOND)
        WORLD().monitored_barrier(30 * SECOND, wait_all_ranks=True)
        texts = []
        for wait_all in (False, True):
            if rank < 2:
                texts.append(ranks.error_of(WORLD().monitored_barrier, 2 * SECOND,
                                            wait_all_ranks=wait_all))
            dist.barrier()  # the group lives on
        if rank == 0:
            texts.append(ranks.error_of(WORLD().monitored_barrier, 0 * SECOND))
        dist.barrier()
        return texts


class Groups(unittest.TestCase):
    def test_many_and_nested_groups(self):
        ranks.run(many_and_nested_groups, 3)

    def test_split(self):
        ranks.run(split_groups, 4)

    def test_split_with_lists_that_overlap(self):
        for outcome in ranks.run(split_wrongly, 3):
            self.assertIn("must be equal", outcome.value)

    def test_shrink(self):
        ranks.run(shrink, 3)

    def test_merge(self):
        ranks.run(merge)

    def test_device_mesh(self):
        ranks.run(mesh, 4)

    def test_names_of_backends(self):
        ranks.run(names_of_backends)

    def test_what_a_group_says_of_itself(self):
        ranks.run(says_of_itself, 3)

    def test_groups_one_after_another_on_one_store(self):
        ranks.run(again_on_one_store)

    def test_attempts_in_part_before_the_one_that_succeeds(self):
        pipe = subprocess.PIPE
        with subprocess.Popen([ranks.PYTHON, "-c", SERVER], stdin=pipe, stdout=pipe) as server:
            port = int(server.stdout.readline())
            for size in (2, 3):
                for second in (False, True):
                    for absent, seconds in ((0, 1), (size - 1, 1), (None, 0.05), (None, 0.2)):
                        ranks.run(attempt_in_part, size, port, absent, second, seconds,
                                  codes=(-signal.SIGALRM,))
                    ranks.run(attempt, size, port)

    def test_restarts_by_torchrun(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/train.py", "w") as file:
                file.write(RESTARTED)
            outcome, = ranks.run_scripts([[
                ranks.PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                "2", "--max-restarts", "3", "--monitor-interval", "0.1", f"{folder}/train.py"]])
        self.assertEqual(ranks.launched(outcome, "attempt "), ["3: [2.0, 2.0, 2.0]"] * 2)

    def test_numbers_of_another_locale(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/comma.src", "w") as file:
                file.write(COMMA)
            subprocess.run(f"localedef --no-archive -c -i {folder}/comma.src {folder}/comma",
                           shell=True, stderr=subprocess.DEVNULL)  # it warns of other categories
            if not os.path.isdir(f"{folder}/comma"):
                self.skipTest("localedef cannot make a locale here (Debian: locales)")
            ranks.run(numbers_with_a_comma, 2, folder)

    def test_very_long_time_outs(self):
        for days in (36500, 99999999):
            ranks.run(very_long_time_outs, 2, days)

    def test_monitored_barrier(self):
        first, second, *_ = (outcome.value for outcome in ranks.run(monitored, 4))
        self.assertIn("[Rank 0]: Rank 2 failed to pass monitoredBarrier in 2000 ms", first[0])
        self.assertIn("[Rank 0]: Ranks 2, 3 failed to pass monitoredBarrier in 2000 ms", first[1])
        self.assertIn("Rank 0 timed out in monitoredBarrier after 0 ms", first[2])
        for text in second:
            self.assertIn("Rank 1 successfully reached monitoredBarrier, but received errors "
                          "while waiting for send/recv from rank 0", text)


if __name__ == "__main__":
    unittest.main()
