#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two ranks in network namespaces, joined by a slow cable: packets between two TUN devices wait,
queue for a few megabits a second, and now and then one is lost. Collectives are right all the same,
and nobody is taken for lost.    slow_cable.py BUILD"""
import ctypes
import fcntl
import heapq
import os
import secrets
import select
import struct
import subprocess
import sys
import tempfile
import threading
import time

DELAY, BYTES_PER_SECOND, LOST = 0.1, 500e3, 150  # s one way; of packets one in so many
SECONDS = 90
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
ADDRESSES = ["10.79.0.1", "10.79.0.2"]


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def ip(*args):
    subprocess.run(["ip", *args], check=True, capture_output=True)


def enter(path):
    """Moves this thread to a network namespace."""
    with open(path) as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), 0) != 0:
            skip(f"cannot enter a network namespace: {os.strerror(ctypes.get_errno())}")


def open_end(name, own):
    """A TUN device in the namespace; its descriptor works from this one."""
    enter(f"/run/netns/{name}")
    try:
        end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH", b"cable", IFF_TUN | IFF_NO_PI))
    except OSError as error:
        skip(f"no TUN device here: {error}")
    finally:
        enter(own)
    return end


class Cable:
    """Takes packets from each end to the other."""

    def __init__(self, ends):
        self.ends, self.waiting, self.free_at, self.count = ends, [], [0.0, 0.0], 0
        self.lost = 0

    def take(self, end):
        packet = os.read(self.ends[end], 65536)
        self.count += 1
        if self.count % LOST == 0:
            self.lost += 1
            return
        begin = max(self.free_at[end], time.monotonic())
        self.free_at[end] = begin + len(packet) / BYTES_PER_SECOND
        heapq.heappush(self.waiting, (self.free_at[end] + DELAY, self.count, 1 - end, packet))

    def give(self):
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            _, _, end, packet = heapq.heappop(self.waiting)
            os.write(self.ends[end], packet)

    def run(self):
        while True:
            due = self.waiting[0][0] - time.monotonic() if self.waiting else 1.0
            ready, _, _ = select.select(self.ends, [], [], max(due, 0.0))
            for end in ready:
                self.take(self.ends.index(end))
            self.give()


def make_cable(names):
    own = f"/proc/self/fd/{os.open('/proc/self/ns/net', os.O_RDONLY)}"
    ends = []
    for name, address in zip(names, ADDRESSES):
        ip("netns", "add", name)
        ends.append(open_end(name, own))
        ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable")
        ip("-n", name, "link", "set", "cable", "up", "mtu", "1400")
        ip("-n", name, "link", "set", "lo", "up")
    return Cable(ends)


def run_ranks(names, build, folder):
    secret = os.path.join(folder, "secret")
    with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        file.write(secrets.token_hex(32))
    env = dict(os.environ, WORLD_SIZE="2", LOCAL_RANK="0", MASTER_ADDR=ADDRESSES[0],
               MASTER_PORT="29613", RING_SECRET_FILE=secret, RING_PEER_TIMEOUT="3")
    command = [f"{build}/bin/ringperf", "all_reduce", "-b", "8", "-e", "512K", "-f", "256",
               "-n", "2", "-w", "1", "-c", "1"]
    return [subprocess.Popen(["ip", "netns", "exec", name, *command], env=dict(env, RANK=str(rank)),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for rank, name in enumerate(names)]


def judge(ranks, cable, started):
    failed = False
    for rank, process in enumerate(ranks):
        try:
            out, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
        if out.strip():
            print(out.rstrip())
        failed = failed or process.returncode != 0
        print(f"rank {rank} ended with {process.returncode}")
    took = time.monotonic() - started
    print(f"{cable.count} packets, {cable.lost} of them lost, in {took:.1f} s")
    return failed or cable.lost == 0


def main():
    if os.geteuid() != 0:
        skip("network namespaces need root")
    names = [f"ring-c{rank}-{os.getpid()}" for rank in range(2)]
    try:
        cable = make_cable(names)
        threading.Thread(target=cable.run, daemon=True).start()
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            failed = judge(run_ranks(names, sys.argv[1], folder), cable, started)
    except (OSError, subprocess.CalledProcessError) as error:
        skip(f"no network namespaces here: {error}")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
    sys.exit(failed)


main()
