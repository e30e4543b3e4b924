# SPDX-License-Identifier: Apache-2.0
"""Stage N of tests/gpu: programs that were built for NCCL, over libring's libnccl.so.2. Each check
of PyTorch and each other program has 8 s."""

import shutil
import sys
from pathlib import Path

from mps import mps_of

HERE = Path(__file__).resolve().parent
RANKS = 2  # of PyTorch
NEED_MPS = ("premul", "graphs")  # the host drives the calls of processes that share a GPU
NCCL_TESTS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather",
              "scatter", "alltoall", "sendrecv", "hypercube")


def value_jobs(amount, under_mps):
    """All calls, types and operations: ranks of one thread, threads and processes of a GPU."""
    shapes = [("processes", 2)] if under_mps else [("one", 2), ("threads", 3)]
    if amount.is_real:
        shapes += [("processes", 4)] if under_mps else [("one", 1), ("one", 4), ("processes", 2)]
    for mode, ranks in shapes:
        yield (f"NCCL's calls: {ranks} {'of one thread' if mode == 'one' else mode}",
               ["gpu_nccl", mode, ranks, 1])


def nccl_tests(stage, amount):
    """nccl-tests' programs, if a folder nccl-tests with them is beside the pack's scripts."""
    folder = HERE / "nccl-tests"
    if not folder.is_dir():
        stage.row("nccl-tests", "not found")
    for name in NCCL_TESTS if folder.is_dir() else ():
        program = folder / f"{name}_perf"
        argv = [program, "-b", "8", "-e", "8M", "-f", "32", "-n", "20", "-w", "1"]
        env = {**stage.env, "LD_PRELOAD": "libnccl.so.2"}
        stage.command(f"nccl-tests: {name}, one thread, a GPU a rank",
                      [*argv, "-g", stage.devices], env=env)
        mpirun = shutil.which("mpirun")
        if mpirun is not None and b"libmpi" in program.read_bytes():
            stage.command(f"nccl-tests: {name}, 2 processes of a GPU",
                          [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2", *argv],
                          env={**env, "NCCL_TESTS_DEVICE": "0"})


def torch_checks(stage, amount, title, without=()):
    """PyTorch's backend nccl, of ranks that share a GPU. After a check that fails, new ranks go on
    with the next. The rehearsal shows with gloo that the checks themselves are right."""
    name = f"PyTorch, {RANKS} processes {title if amount.is_real else 'with gloo on the host'}"
    python = [sys.executable, "-W", "ignore", HERE / "torch_over_nccl.py", "--seconds",
              stage.limit, *([] if amount.is_real else ["--backend", "gloo", "--device", "cpu"])]
    listed = stage.command("list of PyTorch's checks", [*python, "list"], may_skip=True,
                           limit=3 * stage.limit)
    if listed is None or listed.word != "ok":
        return
    left = [check for check in listed.lines[-1].split() if check not in without]
    while left:
        outcome = stage.command(name, [stage.launcher, "-n", RANKS, "--nccl", *python, *left],
                                env=stage.env, limit=(3 + len(left)) * stage.limit)
        if outcome is None:
            return
        passed = [line.split("\t")[1] for line in outcome.lines if "CHECK\t" in line]
        for check in [check for check in left if passed.count(check) == RANKS]:
            stage.row(f"{name}: {check}", "ok")
            left.remove(check)
        if left:
            stage.row(f"{name}: {left.pop(0)}", "FAILED", good=False)


def stage_n(stage, amount):
    if amount.is_real:
        library = stage.folder.parent / "lib" / "ring-nccl"
        stage.env["LD_LIBRARY_PATH"] = f"{library}:{stage.env['LD_LIBRARY_PATH']}"
    stage.side_by_side(value_jobs(amount, under_mps=False))
    nccl_tests(stage, amount)
    torch_checks(stage, amount, "of a GPU", without=NEED_MPS)
    with mps_of(stage, amount) as is_running:
        if is_running:
            stage.side_by_side(value_jobs(amount, under_mps=True))
            if amount.is_real:
                torch_checks(stage, amount, "under MPS")
