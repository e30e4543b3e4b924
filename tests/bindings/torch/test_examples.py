#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An example of docs/examples/torch runs as its readers start it, by torchrun. The GPT has a rank
in each of two network namespaces, as on two hosts.

    test_examples.py ddp_mnist|fsdp2|gpt SOURCE BIN
"""
import os
import re
import subprocess
import sys
import tempfile
from contextlib import ExitStack

NAME, SOURCE, BIN = sys.argv[1:4]
sys.path.insert(0, f"{SOURCE}/perf/compare")
from hosts import Network
from programs import Failed

LONGEST = 300  # seconds of a run, which takes ten


def torchrun(*words):
    return [sys.executable, "-m", "torch.distributed.run", *words]


def example(*words):
    return [f"{SOURCE}/docs/examples/torch/{NAME}.py", *words]


def finish(started):
    """Returns the output of each of them; fails the test if one failed."""
    said = []
    for process in started:
        try:
            said.append(process.communicate(timeout=LONGEST)[0])
        finally:
            process.kill()
    for process, text in zip(started, said):
        print(text, flush=True)
        if process.returncode != 0:
            sys.exit(f"{NAME} ended with {process.returncode}")
    return said


def start(command):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def on_one_host(*words):
    return finish([start(torchrun("--standalone", "--nproc-per-node", "2", *example(*words)))])[0]


def numbers(pattern, text):
    return [float(found) for found in re.findall(pattern, text)]


def expect(holds, what):
    if not holds:
        sys.exit(f"{NAME}: {what}")


def ddp_mnist():
    with tempfile.TemporaryDirectory() as data:
        subprocess.run([f"{BIN}/ringdigits", data, "--train", "2000", "--test", "500"], check=True)
        accuracies = numbers(r"accuracy ([\d.]+) on 2 ranks", on_one_host("--data", data))
    expect(len(accuracies) == 2 and accuracies[-1] > 0.7, f"accuracies {accuracies}")


def fsdp2():
    text = on_one_host()
    held, whole = numbers(r"holds (\d+) of", text), numbers(r"of (\d+) parameters", text)
    expect(len(held) == 2 and sum(held) == whole[0], f"the ranks hold {held} of {whole}")
    losses = numbers(r"loss ([\d.]+)", text)
    expect(len(losses) == 4 and losses[-1] < losses[0], f"losses {losses}")


def sent_bytes(network, host):
    return int(subprocess.run(
        ["ip", "netns", "exec", network.host(host), "cat", "/sys/class/net/e0/statistics/tx_bytes"],
        check=True, capture_output=True, text=True).stdout)


def gpt():
    with ExitStack() as stack:
        try:
            network = Network(2, None)
            network.build(stack)
        except Failed as why:
            print(f"SKIPPED: no network namespaces here: {why}")
            sys.exit(77)
        steps = ["--nnodes", "2", "--nproc-per-node", "1", "--master-addr", network.address(0),
                 "--master-port", "29500"]
        small = example("--layers", "2", "--width", "64", "--steps", "40")
        text = finish([start(["ip", "netns", "exec", network.host(host),
                              *torchrun(*steps, "--node-rank", str(host), *small)])
                       for host in range(2)])[0]
        sent = [sent_bytes(network, host) for host in range(2)]
    losses = numbers(r"loss ([\d.]+) on 2 ranks", text)
    expect(len(losses) == 3 and losses[-1] < losses[0], f"losses {losses}")
    expect(min(sent) > 41 * 4 * 100_000, f"gradients did not cross the wire: {sent} bytes")


os.environ["OMP_NUM_THREADS"] = "1"
{"ddp_mnist": ddp_mnist, "fsdp2": fsdp2, "gpt": gpt}[NAME]()
