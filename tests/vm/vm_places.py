# SPDX-License-Identifier: Apache-2.0
"""Places where ranks run in the guests: starts ranks there, and counts the traffic of the guests'
devices meanwhile."""

import itertools
import json
from dataclasses import dataclass

from vm_guest import Failed

COUNTERS = ("grep -H . /sys/class/infiniband/*/ports/1/hw_counters/sent_pkts "
            "/sys/class/net/*/statistics/tx_bytes")
# UCX's own choice would be UD for connecting, which times out over Soft-RoCE.
ENVIRONMENT = {"ucx": {"UCX_TLS": "rc_verbs,self"}}
MTU = 4096
TOO_SLOW = 90  # seconds beyond what a job should take: others may want this machine, too
ports = itertools.count(29500)


@dataclass
class Traffic:
    """Traffic of a guest's devices: packets of its rxe devices, bytes of its NICs and of lo."""
    packets: int
    wire: int
    loopback: int

    def __sub__(self, other):
        return Traffic(self.packets - other.packets, self.wire - other.wire,
                       self.loopback - other.loopback)

    def __str__(self):
        return (f"sent_pkts +{self.packets}, eth +{self.wire / 1e6:.1f} MB, "
                f"lo +{self.loopback / 1e6:.1f} MB")


def traffic(guest):
    sums = Traffic(0, 0, 0)
    for line in guest.run(COUNTERS).split():
        path, _, value = line.rpartition(":")
        if "infiniband" in path:
            sums.packets += int(value)
        elif "/lo/" in path:
            sums.loopback += int(value)
        else:
            sums.wire += int(value)
    return sums


def shape(guests, rate):
    """All NICs send at this rate (tc's words, as 16mbit); the queue is long enough for rxe."""
    for guest in guests:
        guest.run(f"for n in $(ls /sys/class/net | grep eth); do tc qdisc replace dev $n root tbf "
                  f"rate {rate} burst 64kb limit 4mb; done")


def settings(transport, more=None):
    """Environment of ranks that use this transport (or several, with commas)."""
    own = {"RING_TRANSPORT": transport} | (more or {})
    for name in transport.split(","):
        own |= ENVIRONMENT.get(name, {})
    return own


class Place:
    """Ranks of one guest, or of two by one ringrun in each (--no_ssh)."""

    def __init__(self, *guests):
        self.guests = guests
        self.name = ("one", "two")[len(guests) - 1]
        self.found = None

    def why_not(self, transport):
        """None, or why ranks here cannot use the transport."""
        if self.found is None:
            # ringinfo ends with 3 if it finds a fault
            report = self.guests[0].run("ringinfo --json || test $? = 3")
            self.found = json.loads(report)["transports"]
        if transport not in self.found:
            return f"ringinfo knows no transport {transport}"
        said = self.found[transport]
        return None if said.startswith("works") else f"ringinfo: {transport}: {said}"

    def usable(self, transports):
        return [name for name in transports if not self.why_not(name)]

    def launches(self, environment, each):
        """The commands before a program's, one for each guest."""
        words = "env " + " ".join(f"{name}={value}" for name, value in environment.items())
        if len(self.guests) == 1:
            return [f"{words} ringrun -n {each} --tag-output"]
        words += (" RING_SECRET_FILE=/run/keys/secret ringrun --no_ssh --tag-output --nnodes 2 "
                  f"--nproc-per-node {each} --master_addr a --master_port {next(ports)}")
        return [f"{words} --node_rank {node}" for node in (0, 1)]

    def start(self, environment, program, each=None, seconds=60):
        """Two ranks, or `each` in every guest; a job for each launch."""
        launches = self.launches(environment, each or 2 // len(self.guests))
        return [guest.start(f"{launch} {program}", seconds + TOO_SLOW)
                for guest, launch in zip(self.guests, launches)]

    def run(self, environment, program, each=None, seconds=60):
        """Failed unless all ended with 0."""
        jobs = self.start(environment, program, each, seconds)
        for job in jobs:
            job.wait()
        if any(job.status for job in jobs):
            raise Failed("\n".join(f"in {job.guest.name}: '{job.script}' ended with "
                                   f"{job.status}:\n{job.out}" for job in jobs))

    def check_carrier(self, transport, sent, payload):
        """Failed unless this transport, and no other, carried so many bytes from guest a."""
        over_ip = sent.loopback if self.name == "one" else sent.wire
        right = {"shm": sent.packets == 0 and over_ip < payload // 4,
                 "tcp": sent.packets == 0 and over_ip >= payload}
        by_rdma = sent.packets * MTU >= payload and sent.loopback < payload // 4
        if not right.get(transport, by_rdma):
            raise Failed(f"{payload} bytes were to go by {transport}, but: {sent}")


class SshPlace(Place):
    """The same two guests by a single ringrun, which reaches the other one by ssh."""

    def __init__(self, *guests):
        super().__init__(*guests)
        self.name = "ssh"

    def launches(self, environment, each):
        exports = " ".join(f"-x {name}={value}" for name, value in environment.items())
        return [f"ringrun -H a:{each},b:{each} --tag-output {exports}"]
