#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own DistributedTest, as the torch wheel carries it, unchanged, over a backend.

The skip decorators of those tests ask which backend is tested, by name, so the tests run under
several personas (what a decorator reads as BACKEND): the backend's own name with 2 ranks, "gloo"
with 2 and 4, "mpi" with 4. Together these reach all 118 of 285 that need no GPU. A pass keeps its
processes for all of its tests; each test gets a group of its own, waits for its peers at a gate,
and is ended by an alarm. If a process dies or hangs outside of Python, the rest of the pass goes
on in fresh processes.

    torch_suite.py [--backend ring|gloo...] [--quick] [--only PREFIX]...

--quick runs 115 of them once each: as "gloo" with 2 ranks, and the others as "mpi" with 4. A
listed difference (DIFFERENCES) is expected to fail. Exit status 1 if any other test fails, a
listed one passes, or no test ran; 77 if torch, a backend, numpy or expecttest is not here.
"""

import argparse
import faulthandler
import importlib
import json
import multiprocessing.connection
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import unittest
from collections import Counter, namedtuple
from datetime import timedelta
from pathlib import Path

TEST_SECONDS = 100  # then the alarm; the slowest test takes 4 s
GRACE = 20  # more seconds until a process that no alarm reaches is ended
SKIPPED, PASSED, FAILED = "skipped", "passed", "failed"

Pass = namedtuple("Pass", "persona ranks")
Difference = namedtuple("Difference", "backend test reason below", defaults=[None])

# Tests that a backend cannot pass, and why; with `below`, only under an older PyTorch than that.
EQUAL_SIZES = "Gloo's all_to_all of lists takes equal sizes only"
BY_NAME = "PyTorch refuses monitored_barrier unless the group is named gloo"
DIFFERENCES = [
    Difference("gloo", "test_all_to_all", EQUAL_SIZES),
    Difference("gloo", "test_all_to_all_complex", EQUAL_SIZES),
    Difference("gloo", "test_all_to_all_full_group", EQUAL_SIZES),
    Difference("gloo", "test_all_to_all_group", EQUAL_SIZES),
    Difference("ring", "test_ddp_logging_data_cpu", "DDP's log calls every third party \"custom\""),
    Difference("ring", "test_monitored_barrier_gloo", BY_NAME, (2, 14)),
    Difference("ring", "test_monitored_barrier_gloo_subgroup", BY_NAME, (2, 14)),
]


def passes_of(backend, quick):
    """A backend named gloo has no persona beside "gloo" that tells it from itself."""
    if quick:
        return [Pass("gloo", 2), Pass("mpi", 4)]
    own = [] if backend == "gloo" else [Pass("own", 2)]
    return [*own, Pass("gloo", 2), Pass("gloo", 4), Pass("mpi", 4)]


def body_name(backend, test):
    """The name that a test's body compares with: the no_sync tests know no third party."""
    return "gloo" if "accumulate_gradients_no_sync" in test else backend


def test_class(backend, run):
    """The module, and its tests as decorators shape them for this persona; once a process."""
    os.environ.update(BACKEND=backend if run.persona == "own" else run.persona,
                      WORLD_SIZE=str(run.ranks), MASTER_ADDR="127.0.0.1",
                      TEMP_DIR=tempfile.gettempdir())
    from torch.testing._internal import common_distributed
    if backend != "gloo":
        importlib.import_module(f"{backend}_torch")
        for feature in ("plugin", "ddp", "subgroup"):
            common_distributed.DistTestCases.backend_feature[feature].add(backend)
    from torch.testing._internal.distributed import distributed_test

    class Tests(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        """All tests of one persona."""

    return distributed_test, Tests


def names_of(tests, prefixes):
    found = unittest.TestLoader().getTestCaseNames(tests)
    return [name for name in found if name.startswith(tuple(prefixes or ["test_"]))]


def too_long(*_):
    raise TimeoutError(f"the test took more than {TEST_SECONDS} s")


def make_case(module, tests, name, rank, folder):
    """A test as TestDistBackend.setUp and _run prepare it."""
    for part in ("barrier", "test_dir", "init_dir"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    os.environ["TEMP_DIR"] = str(folder)
    module.Barrier.barrier_id = 0
    case = tests(name)
    case.rank, case.file_name, case.skip_return_code_checks = rank, str(folder / "store"), []
    return case


def run_body(module, case, name, backend, ranks, folder):
    import torch.distributed as dist
    from torch.testing._internal import common_utils
    seconds = module.CUSTOM_PG_TIMEOUT.get(name, module.default_pg_timeout)
    dist.init_process_group(backend, f"file://{folder}/group", world_size=ranks, rank=case.rank,
                            timeout=timedelta(seconds=seconds))
    common_utils.set_rng_seed()
    dist.barrier()
    getattr(case, name)()


def drop_group():
    import torch.distributed as dist
    try:
        dist.destroy_process_group()
    except BaseException:  # a test may have left a broken one, or none
        dist.GroupMember.WORLD = None


def outcome_of(module, case, name, backend, run, folder):
    """(outcome, reason) of one test on one rank."""
    signal.alarm(TEST_SECONDS)
    try:
        run_body(module, case, name, backend, run.ranks, folder)
        return PASSED, ""
    except unittest.SkipTest as why:
        return SKIPPED, str(why)
    except SystemExit as status:  # one of TEST_SKIPS
        return SKIPPED, f"exit status {status.code}"
    except BaseException as error:
        traceback.print_exc()
        text = str(error).split("To execute this test")[0]
        return FAILED, f"{type(error).__name__}: {' '.join(text.split())[:200]}"
    finally:
        signal.alarm(0)


def run_test(module, tests, name, backend, run, rank, folder, done):
    """The outcome; a process that no alarm reaches is ended by the fault handler."""
    if getattr(getattr(tests, name), "__unittest_skip__", False):
        return SKIPPED, getattr(tests, name).__unittest_skip_why__
    module.BACKEND = body_name(backend, name)
    case = make_case(module, tests, name, rank, folder)
    faulthandler.dump_traceback_later(TEST_SECONDS + 3 * GRACE, exit=True)
    result = outcome_of(module, case, name, backend, run, folder)
    leave(done, result[0])
    drop_group()
    faulthandler.cancel_dump_traceback_later()
    return result


def leave(done, outcome):
    """Keep the group up until every rank has passed; a rank that did not lets go at once."""
    if outcome != PASSED:
        done.abort()
    try:
        done.wait(GRACE)
    except threading.BrokenBarrierError:
        pass


def work(backend, run, names, rank, folder, gate, done):
    """One rank: a line in the journal before each test and one after it."""
    log = os.open(folder / f"log{rank}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ["RANK"] = str(rank)
    signal.signal(signal.SIGALRM, too_long)
    module, tests = test_class(backend, run)
    with open(folder / f"journal{rank}", "a", buffering=1, encoding="utf-8") as journal:
        for name in names:
            gate.wait(2 * (TEST_SECONDS + GRACE))
            if rank == 0:
                done.reset()  # before anyone's group is up, so before anyone waits
            print("====", name, flush=True)
            journal.write(json.dumps([name]) + "\n")
            result = run_test(module, tests, name, backend, run, rank, folder / name, done)
            journal.write(json.dumps([name, *result]) + "\n")


def read_journal(path):
    """Returns {test: (outcome, reason)}, with None for a test that only began."""
    results = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        name, *result = json.loads(line)
        results[name] = tuple(result) or None
    return results


def merge(results):
    """The outcome of a test from those of its ranks: any failure, else any success."""
    done = [result for result in results if result]
    for outcome in (FAILED, PASSED, SKIPPED):
        for result in done:
            if result[0] == outcome:
                return result
    return None


def run_processes(backend, run, names, folder):
    """Run `names` on all ranks and return the exit statuses but 0; the journals hold the rest."""
    context = multiprocessing.get_context("spawn")
    gate, done = context.Barrier(run.ranks), context.Barrier(run.ranks)
    ranks = [context.Process(target=work, args=(backend, run, names, rank, folder, gate, done))
             for rank in range(run.ranks)]
    for process in ranks:
        process.start()
    while alive := [process for process in ranks if process.is_alive()]:
        multiprocessing.connection.wait([process.sentinel for process in alive])
        if any(process.exitcode for process in ranks):
            gate.abort()
            for process in ranks:
                process.join(TEST_SECONDS + 2 * GRACE)
    return {process.exitcode for process in ranks} - {0}


def run_pass(backend, run, names, folder):
    """{test: (outcome, reason)} of one pass; processes that died are replaced."""
    results, left, attempt = {}, names, 0
    while left:
        attempt += 1
        home = folder / f"{run.persona}{run.ranks}.{attempt}"
        home.mkdir()
        codes = run_processes(backend, run, left, home)
        journals = [read_journal(home / f"journal{rank}") for rank in range(run.ranks)]
        for name in left:
            seen = [journal[name] for journal in journals if name in journal]
            result = merge(seen)
            if codes and None in seen and (result is None or result[0] != FAILED):
                result = FAILED, f"a process ended in it, exit status {sorted(codes)}"
            if result:
                results[name] = result
        stuck = [name for name in left if name not in results]
        if len(stuck) == len(left):
            raise RuntimeError(f"no test began; see {home}/log0:\n" +
                               (home / "log0").read_text(encoding="utf-8")[-2000:])
        left = stuck
    return results


def expected_of(backend):
    """{test: reason} of this backend under the PyTorch that is here."""
    import torch
    here = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return {entry.test: entry.reason for entry in DIFFERENCES
            if entry.backend == backend and (entry.below is None or here < entry.below)}


def judge(backend, run, results):
    """Print each failure and each listed difference that is gone; count what is wrong."""
    expected, wrong = expected_of(backend), 0
    for name, (outcome, reason) in sorted(results.items()):
        where = f"{backend} as {run.persona}, {run.ranks}: {name}"
        if outcome == FAILED and name in expected:
            print(f"expected  {where}: {expected[name]} ({reason})")
        elif outcome == FAILED:
            wrong += 1
            print(f"FAILED    {where}: {reason}")
        elif outcome == PASSED and name in expected:
            wrong += 1
            print(f"NO LONGER FAILS  {where}: strike it from DIFFERENCES")
    return wrong


def print_table(rows):
    print(f"\n| {'backend as persona, ranks':26} |   ran | passed | failed | skipped | seconds |")
    print(f"|{'-' * 28}|------:|-------:|-------:|--------:|--------:|")
    for title, results, seconds in rows:
        counts = Counter(outcome for outcome, _ in results.values())
        print(f"| {title:26} | {counts[PASSED] + counts[FAILED]:5} | {counts[PASSED]:6} | "
              f"{counts[FAILED]:6} | {counts[SKIPPED]:7} | {seconds:7.0f} |")


def unite(passes):
    """The outcome of each test over several passes."""
    return {name: merge([results[name] for results in passes if name in results])
            for name in {name for results in passes for name in results}}


def run_backend(backend, options, folder):
    """The rows of one backend, the last one their union, and how many tests went wrong."""
    rows, wrong, start = [], 0, time.monotonic()
    names = names_of(test_class(backend, Pass("gloo", 2))[1], options.only)
    for run in passes_of(backend, options.quick):
        done = {name for _, results, _ in rows for name, (outcome, _) in results.items()
                if options.quick and outcome != SKIPPED}
        begin = time.monotonic()
        results = run_pass(backend, run, [name for name in names if name not in done], folder)
        rows.append((f"{backend} as {run.persona}, {run.ranks}", results,
                     time.monotonic() - begin))
        wrong += judge(backend, run, results)
    union = unite([results for _, results, _ in rows])
    return [*rows, (f"{backend}, union", union, time.monotonic() - start)], wrong


def run_all(options, folder):
    rows, wrong = [], 0
    for backend in options.backend:
        (folder / backend).mkdir()
        more, bad = run_backend(backend, options, folder / backend)
        rows, wrong = rows + more, wrong + bad
    print_table(rows)
    counts = Counter(outcome for title, results, _ in rows if title.endswith("union")
                     for outcome, _ in results.values())
    print(f"\n{counts[PASSED]} passed, {counts[FAILED]} failed, {counts[SKIPPED]} skipped")
    return wrong or not counts[PASSED]


def why_absent(backend):
    """None, or why nothing can run here."""
    try:
        for needed in ("torch", "numpy", "expecttest"):
            importlib.import_module(needed)
        if backend != "gloo":
            importlib.import_module(f"{backend}_torch")
    except ImportError as why:
        return str(why)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", nargs="+", default=["ring"], choices=["ring", "gloo"])
    parser.add_argument("--quick", action="store_true", help="a sample, each test once")
    parser.add_argument("--only", action="append", metavar="PREFIX", help="tests named so")
    parser.add_argument("--keep", action="store_true", help="keep the logs and say where they are")
    options = parser.parse_args()
    for absent in filter(None, map(why_absent, options.backend)):
        print(f"SKIPPED: {absent}")
        return 77
    folder = Path(tempfile.mkdtemp(prefix="torch-suite-"))
    try:
        return int(bool(run_all(options, folder)))
    finally:
        if options.keep:
            print(f"logs: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
