# SPDX-License-Identifier: Apache-2.0
"""Ranks for the tests of the PyTorch backend: processes that end, whatever they do.

    outcomes = ranks.run(body, 2)                    # body(rank, size, ...) in 2 forked processes
    outcomes = ranks.run_scripts([command, ...])     # whole programs, with an interpreter's exit

Each outcome has `code` (negative: the signal), `output` and `value` (what the body returned)."""
import contextlib
import dataclasses
import datetime
import faulthandler
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import torch.distributed as dist

# No test waits longer: each takes a few seconds on an idle machine.
DEADLINE = 240
PYTHON = sys.executable


@dataclasses.dataclass
class Outcome:
    code: int
    output: str
    value: object = None


@contextlib.contextmanager
def group(rank, size, store, seconds=60, backend="ring"):
    """The default group of the ranks, destroyed at the end unless there is an exception."""
    start(rank, size, store, seconds, backend)
    yield
    dist.destroy_process_group()


def start(rank, size, store, seconds=60, backend="ring", init=None):
    init = init or f"file://{store}"
    dist.init_process_group(backend, init_method=init, rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=seconds))


def run(body, size=2, *args, codes=(0,), seconds=DEADLINE, env=()):
    """body(rank, size, store, *args) in `size` processes, `store` a path for ranks.group().
    Raises an AssertionError with all outputs unless each exit code is one of `codes`."""
    with tempfile.TemporaryDirectory() as folder:
        processes = [_fork(body, rank, size, folder, args, env, seconds) for rank in range(size)]
        codes_got = _reap(processes, seconds)
        outcomes = [Outcome(code, _read(f"{folder}/output{rank}"), _value(folder, rank))
                    for rank, code in enumerate(codes_got)]
    return _judged(outcomes, codes)


def run_scripts(commands, *, codes=(0,), seconds=DEADLINE, env=()):
    """The commands, all at once, each as a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        for i, command in enumerate(commands):
            with open(f"{folder}/output{i}", "wb") as output:
                processes.append(subprocess.Popen(command, stdout=output, stderr=output,
                                                  env={**os.environ, **dict(env)},
                                                  start_new_session=True).pid)
        codes_got = _reap(processes, seconds)
        outcomes = [Outcome(code, _read(f"{folder}/output{i}"))
                    for i, code in enumerate(codes_got)]
    return _judged(outcomes, codes)


def scripts(text, size, store, *args):
    """For run_scripts(): the Python program `text` on each rank, with sys.argv[1:] = rank, size,
    store, args."""
    head = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
    return [[PYTHON, "-c", head + text, str(rank), str(size), store, *map(str, args)]
            for rank in range(size)]


def launched(outcome, prefix):
    """The lines of an output that begin with `prefix`, without it, sorted."""
    return sorted(re.findall(rf"^{re.escape(prefix)}(.*)$", outcome.output, re.MULTILINE))


def error_of(function, *args, **keywords):
    """The text of the DistBackendError that the call raises."""
    try:
        function(*args, **keywords)
    except dist.DistBackendError as error:
        return str(error)
    raise AssertionError("no error")


def leftovers():
    """The files of libring that remain in /dev/shm."""
    return [name for name in os.listdir("/dev/shm") if "ring" in name]


def _fork(body, rank, size, folder, args, env, seconds):
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        os.setsid()
        output = os.open(f"{folder}/output{rank}", os.O_CREAT | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.update(env)
        faulthandler.dump_traceback_later(seconds * 0.9)
        value = body(rank, size, f"{folder}/store", *args)
        with open(f"{folder}/value{rank}", "wb") as file:
            pickle.dump(value, file)
        code = 0
    except SystemExit as error:
        code = error.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


# Ends all of them at the deadline. @return their exit codes, in order.
def _reap(processes, seconds):
    end, codes = time.monotonic() + seconds, {}
    while len(codes) < len(processes):
        for process in processes:
            if process not in codes:
                found, status = os.waitpid(process, os.WNOHANG)
                if found:
                    codes[process] = os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            for process in set(processes) - set(codes):
                os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)
                codes[process] = "still there at the deadline"
        time.sleep(0.01)
    return [codes[process] for process in processes]


def _judged(outcomes, codes):
    if any(outcome.code not in codes for outcome in outcomes):
        raise AssertionError("\n".join(f"process {i} ended with {outcome.code}:\n{outcome.output}"
                                       for i, outcome in enumerate(outcomes)))
    return outcomes


def _read(path):
    with open(path, errors="replace") as file:
        return file.read()


def _value(folder, rank):
    try:
        with open(f"{folder}/value{rank}", "rb") as file:
            return pickle.load(file)
    except FileNotFoundError:
        return None
