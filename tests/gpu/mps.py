# SPDX-License-Identifier: Apache-2.0
"""A private MPS daemon of CUDA in a temporary folder. It changes no setting of the GPU, and is
ended in any case."""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from programs import tool_path

SECONDS = 10  # for one command of the daemon
LAST_LINES = 12


class Daemon:
    def __init__(self, control):
        self.control = control
        self.folder = Path(tempfile.mkdtemp(prefix="mps-"))
        self.env = {"CUDA_MPS_PIPE_DIRECTORY": str(self.folder / "pipe"),
                    "CUDA_MPS_LOG_DIRECTORY": str(self.folder / "log")}
        self.started = self.ended = False

    def __enter__(self):
        for folder in self.env.values():
            Path(folder).mkdir()
        self.started = self.ask(["-d"], None)
        return self

    def ask(self, options, text):
        """@return whether the command ended well."""
        try:  # no pipes for output: the daemon would inherit and keep them
            return subprocess.run([self.control, *options], input=text, text=True, timeout=SECONDS,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env={**os.environ, **self.env}).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False

    def processes(self):
        """The daemon and its server: processes whose environment has the private folder."""
        mark = f"CUDA_MPS_PIPE_DIRECTORY={self.env['CUDA_MPS_PIPE_DIRECTORY']}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:  # it has ended, or is another user's
                pass
        return found

    def __exit__(self, *failure):
        self.ended = self.ask([], "quit\n")
        for pid in [] if self.ended else self.processes():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def last_words(self):
        lines = []
        for path in sorted((self.folder / "log").glob("*.log")):
            lines += path.read_text(errors="replace").splitlines()[-LAST_LINES:]
        return "\n".join(lines)


@contextmanager
def mps_of(stage, amount):
    """Within it, programs of the stage are clients of a daemon. Yields whether the daemon runs."""
    control = stage.tools["mps"] or shutil.which("nvidia-cuda-mps-control", path=tool_path())
    if control is None:
        stage.row("nvidia-cuda-mps-control", "not found")
        yield False
        return
    with Daemon(control) as daemon:
        if not daemon.started:
            stage.row("the MPS daemon", "FAILED: it did not start", good=False,
                      note=daemon.last_words())
            yield False
            return
        stage.env.update(daemon.env)
        if not amount.is_real:
            stage.env.update(FAKE_CUDA_MPS="1", FAKE_CUDA_BLOCKS="32")
        yield True
        if stage.failures():
            stage.row("the last lines of the MPS daemon", "see the note", note=daemon.last_words())
    stage.row("the MPS daemon", "ended" if daemon.ended else "FAILED: killed", good=daemon.ended)
