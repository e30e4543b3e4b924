# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of compare_torch.py on this host, or on two hosts that are its namespaces."""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from hosts import Network
from programs import HERE, Failed, json_lines

LONGEST = 900  # seconds, after which a run has failed


class Host:
    name = "host"

    def command(self, rank, ranks):
        return []

    def variables(self, rank, ranks):
        return {"LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks)}


class Namespaces:
    """Two network namespaces, each with half of the ranks."""

    name = "namespaces"

    def __init__(self, stack):
        self.network = Network(2, None)
        self.network.build(stack)

    def command(self, rank, ranks):
        return ["ip", "netns", "exec", self.network.host(rank * 2 // ranks)]

    def variables(self, rank, ranks):
        local = ranks // 2
        return {"GLOO_SOCKET_IFNAME": "e0", "LOCAL_RANK": str(rank % local),
                "LOCAL_WORLD_SIZE": str(local)}


def wait_for(ranks):
    """Waits until all ranks have ended, one has failed, or the time is up."""
    deadline = time.monotonic() + LONGEST
    while any(rank.poll() is None for rank in ranks):
        if any(rank.poll() for rank in ranks) or time.monotonic() > deadline:
            time.sleep(1)  # other ranks may still print the cause
            break
        time.sleep(0.05)


def end_all(ranks):
    for rank in ranks:
        if rank.poll() is None:
            rank.kill()
        rank.wait()


def output_of(ranks, files):
    """@return the output of rank 0. Raises Failed if a rank has failed."""
    texts = [Path(file.name).read_text() for file in files]
    for rank, text in zip(ranks, texts):
        if rank.returncode != 0:
            lines = text.strip().splitlines()
            raise Failed(f"a rank ended with status {rank.returncode}: "
                         f"{lines[-1] if lines else ''}")
    return texts[0]


def run_ranks(options, place, program, ranks, spec, settings=None):
    """Runs a program on all ranks. @return the rows that rank 0 has printed."""
    env = {**os.environ, "PYTHONPATH": f"{options.build}/python", "OMP_NUM_THREADS": "1",
           "WORLD_SIZE": str(ranks), **(settings or {})}
    with tempfile.TemporaryDirectory() as folder:
        meeting = Path(folder, "meeting")
        meeting.write_bytes(bytes(4096))
        spec = json.dumps({**spec, "meeting": str(meeting), "store": f"{folder}/store",
                           "bind": options.bind == "core"})
        files = [open(Path(folder, str(rank)), "w") for rank in range(ranks)]
        started = []
        try:
            for rank, file in enumerate(files):
                started.append(subprocess.Popen(
                    [*place.command(rank, ranks), options.python, HERE / program, spec],
                    env={**env, "RANK": str(rank), **place.variables(rank, ranks)},
                    stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT))
            wait_for(started)
        finally:
            end_all(started)
            for file in files:
                file.close()
        return json_lines(output_of(started, files))
