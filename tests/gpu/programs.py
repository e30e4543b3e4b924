# SPDX-License-Identifier: Apache-2.0
"""Runs programs of tests/gpu, each with a limit. One that hangs leaves the place of each of its
threads, and is killed with all processes that it started."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PLACES_SECONDS = 10   # at most, for the places of a program that hangs
END_SECONDS = 2       # left for killing it and writing the result
TRACED_MOST = 4       # processes that a debugger looks at
NOTE_LINES = 12       # of a program's output, in the result of a failure


def read(path):
    try:
        return Path(path).read_text(errors="replace")
    except OSError:  # the process has ended
        return ""


def processes_of(session):
    """Processes of the session, and all that descend from them."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = read(entry / "stat").rpartition(")")[2].split()
            if len(fields) > 3:
                found[int(entry.name)] = (int(fields[1]), int(fields[3]))
    ours = {pid for pid, (_, its_session) in found.items() if its_session == session}
    while True:
        more = {pid for pid, (parent, _) in found.items() if parent in ours} - ours
        if not more:
            return sorted(ours)
        ours |= more


def catches(pid, number):
    masks = [line for line in read(f"/proc/{pid}/status").splitlines()
             if line.startswith("SigCgt:")]
    return bool(masks) and int(masks[0].split()[1], 16) >> (number - 1) & 1 == 1


def kernel_places(pid):
    """In which queue of the kernel each thread of a process waits."""
    lines = []
    for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
        state = read(task / "stat").rpartition(")")[2].split()[:1]
        lines.append(f"thread {task.name} ({read(task / 'comm').strip()}): state "
                     f"{''.join(state)}, waits in {read(task / 'wchan') or 'user space'}")
    return lines


def debugger_of(pid):
    debugger = shutil.which("cuda-gdb", path=tool_path()) or shutil.which("gdb")
    if debugger is None:
        return None
    argv = [debugger, "-p", str(pid), "-batch", "-nx", "-ex", "set pagination off"]
    if debugger.endswith("cuda-gdb"):  # a lock file would allow one at a time
        argv += ["--cuda-use-lockfile=0", "-ex", "info cuda kernels"]
    return [*argv, "-ex", "thread apply all bt 12"]


def tool_path():
    """PATH, and where CUDA's tools are if it does not have them."""
    return os.pathsep.join(map(str, [os.environ["PATH"], *Path("/usr/local").glob("cuda*/bin")]))


def backtraces(pids, seconds):
    """Backtraces of all threads, by one debugger for each process, side by side."""
    started = []
    for pid in pids[:TRACED_MOST]:
        argv = debugger_of(pid)
        if argv is None:
            return ["no debugger was found"]
        output = tempfile.TemporaryFile("w+", errors="replace")
        started.append((pid, output, subprocess.Popen(
            argv, stdout=output, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
            start_new_session=True)))
    end = time.monotonic() + seconds
    lines = []
    for pid, output, process in started:
        try:
            process.wait(max(0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            lines.append(f"the debugger of process {pid} was stopped after {seconds:.0f} s")
        output.seek(0)
        lines += [f"process {pid}"] + [line.rstrip() for line in output
                                       if line.startswith(("#", "Thread ", "  Kernel", "* "))]
        output.close()
    return lines


def places_of(session):
    """Where each thread is: by the kernel, by the program itself (on SIGUSR1), by a debugger."""
    end = time.monotonic() + PLACES_SECONDS
    pids = processes_of(session)
    lines = []
    for pid in pids:
        lines += [f"process {pid}: {read(f'/proc/{pid}/comm').strip()}", *kernel_places(pid)]
    asked = [pid for pid in pids if catches(pid, signal.SIGUSR1)]
    for pid in asked:
        try:
            os.kill(pid, signal.SIGUSR1)
        except ProcessLookupError:
            pass
    time.sleep(1 if asked else 0)
    # Ranks are the interesting ones; the first process may have started them.
    return lines + backtraces(asked or pids[::-1], end - time.monotonic())


def kill_all(session):
    """Kills the process group, and what left it."""
    for pid in processes_of(session):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    try:
        os.killpg(session, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Outcome:
    """How a program ended: `word`, `good`, its lines of output, seconds, places if it hung."""

    def __init__(self, word, good, lines=(), seconds=None, places=()):
        self.word, self.good, self.lines = word, good, list(lines)
        self.seconds, self.places = seconds, list(places)

    def note(self):
        if self.word == "ok":
            return ""
        shown = [line for line in self.lines if line.strip()][-NOTE_LINES:]
        return "\n".join(shown + self.places)


def run_program(argv, limit, env, may_skip):
    """Runs it for at most `limit` seconds; the places of a hang take PLACES_SECONDS more."""
    start = time.monotonic()
    places = []
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen([str(word) for word in argv], stdout=output,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   start_new_session=True, env={**os.environ, **env})
        try:
            code = process.wait(limit)
            word = {0: "ok", 77: "skipped"}.get(code, f"FAILED ({code})")
        except subprocess.TimeoutExpired:
            places = places_of(process.pid)
            word = f"FAILED: killed after {limit:.0f} s"
        finally:
            kill_all(process.pid)
            process.wait()
        output.seek(0)
        lines = output.read().splitlines()
    good = word == "ok" or (word == "skipped" and may_skip)
    return Outcome(word, good, lines, time.monotonic() - start, places)


class Stage:
    """Programs of one stage, which ends in time: what does not fit is a result that says so."""

    def __init__(self, letter, results, folder, seconds, limit, sides):
        self.letter, self.results, self.folder = letter, results, folder
        self.limit, self.sides = limit, sides
        self.launcher, self.devices, self.tools = folder / "ringrun", 1, {}
        self.start = time.monotonic()
        self.end = self.start + seconds
        self.env = {}
        if (folder.parent / "lib").is_dir():  # of a pack
            libraries = [str(folder.parent / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
            self.env["LD_LIBRARY_PATH"] = ":".join(filter(None, libraries))

    def row(self, name, value, unit="", **rest):
        self.results.add(self.letter, name, value, unit, **rest)

    def command(self, name, argv, env=None, may_skip=False, limit=None, fails_with=None):
        """Runs it and adds a result. With `fails_with`, it must fail and print this text.
        @return its Outcome, or None if no time was left."""
        left = self.end - time.monotonic() - PLACES_SECONDS - END_SECONDS
        if left < 1:
            self.row(name, "not run: the time of the stage is over", good=False)
            return None
        outcome = run_program(argv, min(limit or self.limit, left), env or {}, may_skip)
        word, good = outcome.word, outcome.good
        if fails_with is not None and not outcome.places:
            good = word != "ok" and any(fails_with in line for line in outcome.lines)
            word = "refused, as it must be" if good else f"FAILED: not refused: {word}"
        self.row(name, word, good=good, seconds=outcome.seconds,
                 note="" if fails_with is not None and good else outcome.note())
        return outcome

    def program(self, name, argv, env=None, before=(), **rest):
        """A program of the folder; `before` is the command that starts it."""
        return self.command(name, [*before, self.folder / argv[0], *argv[1:]],
                            {**self.env, **(env or {})}, **rest)

    def side_by_side(self, jobs):
        """Jobs are (name, argv) or (name, argv, options); the order of results is that of ends."""
        with ThreadPoolExecutor(self.sides) as pool:
            waiting = [pool.submit(self.program, job[0], job[1], **(job[2] if job[2:] else {}))
                       for job in jobs]
            for job in waiting:
                job.result()

    def failures(self):
        return [row for row in self.results.failures() if row["stage"] == self.letter]

    def close(self):
        self.row("the stage", time.monotonic() - self.start, "s")


def figures_of(outcome):
    """Of lines `ROW<tab>name<tab>value<tab>unit` of the output: {name: (value, unit)}."""
    lines = [] if outcome is None else outcome.lines
    rows = [line.split("\t")[1:] for line in lines if line.startswith("ROW\t")]
    return {name: (float(value), unit) for name, value, unit in rows}
