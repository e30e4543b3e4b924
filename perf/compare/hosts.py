#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures algorithms on several hosts, which are network namespaces of this machine on one switch.

    perf/compare/hosts.py --hosts 2 --per-host 2 --rate 200mbit --rounds 7

Each host's wire is slowed down to --rate in both directions, so that the wire limits the speed and
not this machine's cores. In each round every algorithm is measured with all sizes. The table has
the medians over rounds of calls in place, in milliseconds, and the algorithm that the library
chose. The program needs root for the namespaces, and ip and tc (iproute2).
"""

import argparse
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from figures import list_of, parse_size, rotated, size_name
from programs import Absent, Build, Failed, json_lines, progress, run

ALGORITHMS = ["ring", "halving", "direct", "tree", "chain", "hierarchical"]
FIRST_PORT = 29500


class Network:
    """Namespaces connected by a bridge, which is in a separate namespace."""

    def __init__(self, hosts, rate):
        self.name, self.hosts, self.rate = f"ring{os.getpid()}", hosts, rate

    def host(self, number):
        return f"{self.name}-{number}"

    def address(self, number):
        return f"10.78.0.{number + 1}"

    def namespace(self, stack, name):
        run(["ip", "netns", "add", name])
        stack.callback(run, ["ip", "netns", "del", name])
        run(["ip", "-n", name, "link", "set", "lo", "up"])

    def slow_down(self, name, device):
        if self.rate:
            run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", device, "root", "tbf",
                 "rate", self.rate, "burst", "64kb", "latency", "50ms"])

    def plug_in(self, stack, number):
        host, port = self.host(number), f"p{number}"
        self.namespace(stack, host)
        run(["ip", "link", "add", "e0", "netns", host, "type", "veth", "peer", "name", port,
             "netns", self.name])
        run(["ip", "-n", self.name, "link", "set", port, "master", "switch", "up"])
        run(["ip", "-n", host, "addr", "add", f"{self.address(number)}/24", "dev", "e0"])
        run(["ip", "-n", host, "link", "set", "e0", "up"])
        self.slow_down(host, "e0")
        self.slow_down(self.name, port)

    def build(self, stack):
        self.namespace(stack, self.name)
        run(["ip", "-n", self.name, "link", "add", "switch", "type", "bridge"])
        run(["ip", "-n", self.name, "link", "set", "switch", "up"])
        for number in range(self.hosts):
            self.plug_in(stack, number)


class Ranks:
    """Runs a rank of ringperf for each rank of all hosts."""

    def __init__(self, options, network, folder):
        self.options, self.network, self.folder = options, network, folder
        self.build = Build("libring", options.libring)
        self.build.need(self.build.ringperf)
        self.port = FIRST_PORT
        self.secret = folder / "secret"
        self.secret.write_bytes(secrets.token_bytes(32))
        self.secret.chmod(0o600)

    def host_of(self, rank):
        options = self.options
        return rank % options.hosts if options.in_turn else rank // options.per_host

    def start(self, rank, algorithm, out):
        options, ranks = self.options, self.options.hosts * self.options.per_host
        given = {"RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": self.network.address(0),
                 "MASTER_PORT": self.port, "RING_SECRET_FILE": self.secret,
                 "RING_ALGO": "" if algorithm == "auto" else algorithm}
        command = ["ip", "netns", "exec", self.network.host(self.host_of(rank)),
                   self.build.ringperf, options.collective, "-b", min(options.sizes), "-e",
                   max(options.sizes), "-f", options.factor, "-n", options.calls, "-w", 1, "-c", 0,
                   *(["--json", out] if rank == 0 else [])]
        return subprocess.Popen([str(word) for word in command], text=True,
                                env={**os.environ, **{k: str(v) for k, v in given.items()}},
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def measure(self, algorithm):
        """@return rank 0's results in place."""
        out = self.folder / "rank0.json"
        self.port += 1
        ranks = [self.start(rank, algorithm, out)
                 for rank in reversed(range(self.options.hosts * self.options.per_host))]
        errors = [rank.communicate()[1] for rank in ranks]
        failures = [text for rank, text in zip(ranks, errors) if rank.returncode != 0]
        if failures:
            raise Failed(f"{algorithm}: {failures[0].strip()}")
        return [line for line in json_lines(out.read_text()) if line["in_place"]]


def measure_all(options, ranks):
    """@return the times by (size, algorithm), and the algorithms that auto chose by size."""
    times, chosen = {}, {}
    names = [*options.algorithms, "auto"]
    for number in range(options.rounds):
        for name in rotated(names, number):
            progress(f"round {number + 1} of {options.rounds}: {name}")
            for line in ranks.measure(name):
                times.setdefault((line["bytes"], name), []).append(line["time_us"])
                if name == "auto":
                    chosen[line["bytes"]] = line["algorithm"]
    progress("")
    return times, chosen


def print_table(options, times, chosen):
    names = options.algorithms
    print("| bytes |", " | ".join(names), "| auto | chosen | auto / best |")
    print("|---:|" + "---:|" * (len(names) + 1) + "---|---:|")
    for size in sorted(chosen):
        medians = {name: statistics.median(times[size, name]) / 1e3 for name in [*names, "auto"]}
        best = min(medians[name] for name in names)
        print(f"| {size_name(size)} |", " | ".join(f"{medians[name]:.2f}" for name in names),
              f"| {medians['auto']:.2f} | {chosen[size]} | {medians['auto'] / best:.2f} |")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--libring", default="build", help="a build folder or a prefix")
    parser.add_argument("--collective", default="all_reduce")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--per-host", type=int, default=2)
    parser.add_argument("--in-turn", action="store_true", help="rank r is on host r mod HOSTS")
    parser.add_argument("--rate", help="rate of each host's wire in tc's notation, such as 200mbit "
                                       "(default: unlimited)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=5, help="timed calls per size")
    parser.add_argument("--sizes", type=list_of(parse_size), default=[2**16, 2**24],
                        help="a comma list of the smallest and the largest size")
    parser.add_argument("--factor", type=int, default=4, help="factor from one size to the next")
    parser.add_argument("--algorithms", type=list_of(str), default=ALGORITHMS)
    parser.add_argument("--json", type=Path, help="write all times to this file")
    return parser.parse_args()


def main():
    options = parse_options()
    network = Network(options.hosts, options.rate)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        try:
            ranks = Ranks(options, network, Path(folder))
            network.build(stack)
            times, chosen = measure_all(options, ranks)
        except (Absent, Failed) as why:
            sys.exit(f"hosts.py: {why}")
    print_table(options, times, chosen)
    if options.json:
        rows = [{"bytes": size, "algorithm": name, "us": values}
                for (size, name), values in times.items()]
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
