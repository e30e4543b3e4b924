# SPDX-License-Identifier: Apache-2.0
"""Works and futures: several threads, dropped Works, late futures, refused calls, forks."""
import datetime
import gc
import os
import sys
import threading
import time
import unittest

import torch
import torch.distributed as dist

import ranks


def start_reduction(count=1 << 20):
    tensor = torch.ones(count)
    return tensor, dist.all_reduce(tensor, async_op=True)


def several_waiters(rank, size, store):
    with ranks.group(rank, size, store):
        for _ in range(50):
            tensor, work = start_reduction(10_000)
            threads = [threading.Thread(target=work.wait) for _ in range(4)]
            future = work.get_future()
            for thread in threads:
                thread.start()
            while not work.is_completed():
                pass
            for thread in threads:
                thread.join()
            assert future.wait()[0].sum().item() == size * 10_000
            assert tensor.sum().item() == size * 10_000


def dropped_works(rank, size, store):
    with ranks.group(rank, size, store):
        tensors = []
        for _ in range(100):
            tensor, work = start_reduction(50_000)
            tensors.append(tensor)
            del work
        dist.all_reduce(torch.ones(1))
        last = start_reduction(1)[1]
        last.wait()
        ended = time.monotonic() + ranks.DEADLINE / 2
        while any(tensor[0] != size or tensor[-1] != size for tensor in tensors):
            assert time.monotonic() < ended
            time.sleep(0.001)


def late_futures(rank, size, store):
    with ranks.group(rank, size, store):
        called = []
        for i in range(100):
            tensor, work = start_reduction(100)
            if i % 2:
                work.wait()
            future = work.get_future()
            del work
            future = future.then(lambda done: called.append(done.value()[0][0].item()))
            future.wait()
        assert called == [size] * 100, called


def copies_of_a_view(rank, size, store):
    with ranks.group(rank, size, store):
        whole = torch.zeros(8, 2)
        work = dist.all_reduce(whole[:, 0].add_(1), async_op=True)
        work.wait()
        assert whole[:, 0].tolist() == [size] * 8 and whole[:, 1].tolist() == [0] * 8


# Whichever thread ends a call, the copy to a tensor whose elements do not lie side by side is made,
# and callbacks run, in the modes of the thread that made the call.
def in_the_callers_modes(rank, size, store):
    def spread():
        return torch.zeros(4, 4)[:, ::2].add_(rank + 1)

    def modes(_):
        return torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    total = size * (size + 1) / 2
    with ranks.group(rank, size, store):
        for _ in range(20):
            with torch.inference_mode():
                tensors = [spread() for _ in range(5)]
                works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
                works[0].wait()
                works[1].get_future().wait()
                seen = works[2].get_future().then(modes)
                assert seen.wait() == (True, False), seen.value()
            works[3].wait()
            while not works[4].is_completed():
                pass
            works[4].wait()
            for tensor in tensors:
                assert tensor.is_inference() and (tensor == total).all(), tensor
            # A leaf is written in place, which grad mode forbids.
            leaf = spread().requires_grad_()
            with torch.no_grad():
                future = dist.all_reduce(leaf, async_op=True).get_future()
            future.wait()
            assert (leaf == total).all() and leaf.is_leaf, leaf
            assert modes(None) == (False, True)


# A list of outputs whose call libring refuses: copies of what never came must not be written.
def refused_call(rank, size, store):
    with ranks.group(rank, size, store):
        whole = torch.full((4, 2), 7.0)
        try:
            dist.distributed_c10d._get_default_group().recv([whole[:, 0]], size + 3, 0)
        except RuntimeError as error:
            text = str(error)
        else:
            raise AssertionError("no error")
        gc.collect()
        assert (whole == 7).all(), whole
        dist.all_reduce(torch.ones(1))  # the group lives on
        return text


# Work.is_completed() holds the interpreter's lock; another thread may be ending the operation,
# which runs Python code of the user.
def asked_while_another_ends(rank, size, store):
    with ranks.group(rank, size, store):
        for _ in range(100):
            _, work = start_reduction(1000)
            future = work.get_future().then(lambda done: sum(range(1000)))
            while not work.is_completed():
                pass
            future.wait()


def waits_too_long(rank, size, store):
    with ranks.group(rank, size, store):
        text = ""
        if rank == 0:
            tensor, work = start_reduction(5)
            text = ranks.error_of(work.wait, datetime.timedelta(milliseconds=50))
            dist.distributed_c10d._get_default_store().set("waited", "1")
            work.wait()  # the call has gone on
        else:
            dist.distributed_c10d._get_default_store().wait(["waited"])
            tensor = torch.ones(5)
            dist.all_reduce(tensor)
        assert tensor.tolist() == [size] * 5
        return text


# The child of a rank that has works under way, with another thread in the completer all the time.
def forks_with_works(rank, size, store):
    with ranks.group(rank, size, store):
        stop = threading.Event()

        def busy():
            for _ in range(300):
                start_reduction(1000)[1].get_future().wait()
            stop.set()

        thread = threading.Thread(target=busy)
        thread.start()
        forks = 0
        while not stop.is_set():
            child = os.fork()
            if child == 0:
                gc.collect()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            forks += 1
        thread.join()
        _, work = start_reduction(10)
        future = work.get_future()
        child = os.fork()
        if child == 0:
            texts = [ranks.error_of(work.wait), ranks.error_of(work.is_completed),
                     ranks.error_of(dist.all_reduce, torch.ones(1)),
                     ranks.error_of(dist.all_reduce, torch.ones(1), async_op=True)]
            del work, future
            gc.collect()
            dist.destroy_process_group()
            print("\n".join(texts), file=sys.stderr, flush=True)
            os._exit(0 if all("fork" in text for text in texts) else 1)
        assert os.waitpid(child, 0)[1] == 0
        future.wait()


# Threads of rank 0 wait for messages that never come while it destroys the group.
def destroyed_beside_waits(rank, size, store):
    for i in range(30):
        ranks.start(rank, size, f"{store}{i}")
        works = [dist.irecv(torch.ones(1), 1, tag=tag) for tag in range(4)] if rank == 0 else []
        futures = [work.get_future() for work in works[:2]]
        texts = []
        threads = [threading.Thread(target=lambda wait: texts.append(ranks.error_of(wait)),
                                    args=(work.wait,)) for work in works[1:]]
        for thread in threads:
            thread.start()
        shared = dist.distributed_c10d._get_default_store()
        if rank == 0:
            shared.set("made", "")
        shared.wait(["made"])  # a call to a rank that has left would fail at once
        dist.destroy_process_group()
        for thread in threads:
            thread.join()
        texts += [ranks.error_of(future.wait) for future in futures]
        assert len(texts) == (5 if rank == 0 else 0) and all(texts), texts


class Works(unittest.TestCase):
    def test_a_group_is_destroyed_beside_waits(self):
        ranks.run(destroyed_beside_waits)

    def test_several_threads_wait_for_one_work(self):
        ranks.run(several_waiters)

    def test_dropped_works_go_on(self):
        ranks.run(dropped_works)

    def test_futures_taken_late(self):
        ranks.run(late_futures)

    def test_futures_without_progress_thread(self):
        ranks.run(late_futures, env={"RING_PROGRESS": "none"})
        ranks.run(dropped_works, env={"RING_PROGRESS": "none"})

    def test_a_view_is_written_back(self):
        ranks.run(copies_of_a_view)

    def test_an_end_in_the_callers_modes(self):
        ranks.run(in_the_callers_modes)

    def test_a_refused_call_writes_nothing(self):
        for outcome in ranks.run(refused_call):
            self.assertIn("peer is 5", outcome.value)

    def test_a_work_is_asked_while_another_thread_ends_it(self):
        ranks.run(asked_while_another_ends)

    def test_a_wait_that_is_too_short(self):
        text = ranks.run(waits_too_long)[0].value
        for part in (" Timed out ", "50 ms", "all_reduce", "rank 0 of 2"):
            self.assertIn(part, text)

    def test_a_fork_among_works(self):
        for outcome in ranks.run(forks_with_works):
            self.assertIn("fork", outcome.output)


if __name__ == "__main__":
    unittest.main()
