# SPDX-License-Identifier: Apache-2.0
"""Runs perftest in the guests, which shows the limits of the wire, and compares libring with it."""

import itertools
import math
import time
from statistics import median

from vm_cases import swept
from vm_guest import Failed

MIB = 1 << 20
# The time-out of perftest's queue pairs is 67 ms, which a shaped or busy wire exceeds, and the
# rxe of Linux 6.1 answers what is then sent twice with an error; 20 is 4.3 s.
PATIENT = "-x 1 -u 20"
PINGPONG_PORT = 18515
SIZES = (256 << 10, 1 << 20, 4 << 20)
BAND, DELAY = 0.85, 1.5  # what verbs must reach of half of ib_write_bw -b; of ib_write_lat
TWO_RAILS = 1.6
RAIL_ROUNDS = 3
FEWEST = 5  # calls that perftest makes
TRIES = 8
SECONDS = 180


ports = itertools.count(18600)


class NoClock(Failed):
    """perftest could not measure the rate of the processor's clock: the machine is busy."""


def serve(server, words, port):
    """Starts a server; returns when it listens."""
    serving = server.start(words, SECONDS)
    end = time.monotonic() + SECONDS
    while server.start(f"ss -ltnH 'sport = :{port}' | grep -q .").wait().status != 0:
        if serving.ended() or time.monotonic() > end:
            raise Failed(f"'{words}' does not listen:\n{serving.out}")
    return serving


class Perftest:
    """A program of perftest between two guests, or within one, over one rail (a NIC and its rxe
    device)."""

    def __init__(self, server, client, words, rail=0):
        program, _, options = words.partition(" ")
        port = next(ports)
        self.words = f"{program} -d rxe{rail} -p {port} {PATIENT} {options}"
        self.serving = serve(server, self.words, port)
        self.asking = client.start(f"{self.words} 10.88.{rail}.{server.node}", SECONDS)

    def figure(self, column):
        """A figure of the last row."""
        for job in (self.asking, self.serving):
            job.wait()
        if "Can't produce a report" in self.asking.out + self.serving.out:
            raise NoClock(f"{self.words}: the clock is not known")
        rows = [line.split() for line in self.asking.must().splitlines()
                if line.strip()[:1].isdigit()]
        self.serving.must()
        if not rows:
            raise Failed(f"{self.words} printed no figures:\n{self.asking.out}")
        if not math.isfinite(float(rows[-1][column])):
            raise NoClock(f"{self.words}: the clock is not known")
        return float(rows[-1][column])

    def bandwidth(self):
        """MB/s (10^6 bytes); with -b the sum of both directions."""
        return self.figure(3) * MIB / 1e6


def again(act, *what):
    """act(...), some times more where perftest lacks the clock."""
    for _ in range(TRIES - 1):
        try:
            return act(*what)
        except NoClock:
            pass
    return act(*what)


def both_ways(place, size, calls):
    words = f"ib_write_bw -b -s {size} -n {calls} -t 4"
    return again(lambda: Perftest(place.guests[0], place.guests[-1], words).bandwidth())


def delay(place, calls):
    """us of an 8-byte write: half of a round trip."""
    words = f"ib_write_lat -s 8 -n {calls}"
    return again(lambda: Perftest(place.guests[0], place.guests[-1], words).figure(4))


def pingpong(server, client):
    """The plainest program of libibverbs."""
    serving = serve(server, "ibv_rc_pingpong -g 1 -n 20", PINGPONG_PORT)
    client.run(f"ibv_rc_pingpong -g 1 -n 20 {server.name}")
    serving.must()


def wire(place):
    """Soft-RoCE works; returns its figures."""
    pingpong(place.guests[0], place.guests[-1])
    return (f"ib_write_bw -b 1 MiB {both_ways(place, MIB, 5):.1f} MB/s summed; "
            f"ib_write_lat 8 B {delay(place, 200):.0f} us")


def rail_bandwidth(place, rails):
    """MB/s of writes from b to a over these rails at the same time."""
    tests = [Perftest(*place.guests, f"ib_write_bw -s {MIB} -n 10 -t 4", rail) for rail in rails]
    return sum(test.bandwidth() for test in tests)


def rails(place):
    """Two rails of shaped NICs carry at the same time."""
    single, both = (median(again(rail_bandwidth, place, used) for _ in range(RAIL_ROUNDS))
                    for used in ((0,), (0, 1)))
    if both < TWO_RAILS * single:
        raise Failed(f"one rail {single:.2f} MB/s, two {both:.2f}")
    return f"ib_write_bw 1 MiB: one rail {single:.2f} MB/s, two at once {both:.2f}"


def verbs_rails(place):
    """busbw of an all_reduce over verbs, by one rail and by all that there are, in turns."""
    found = {"": [], "=rxe0": []}
    for _ in range(RAIL_ROUNDS):
        for hca, busbw in found.items():
            row = swept(place, "verbs", "all_reduce -b 2M -e 2M -n 3 -w 1",
                        more={"RING_IB_HCA": hca})[0]
            busbw.append(row["busbw"] * 1000)
    both, single = (median(busbw) for busbw in found.values())
    if both < TWO_RAILS * single:
        raise Failed(f"verbs by one rail {single:.2f} MB/s, by two {both:.2f}")
    return f"verbs, all_reduce 2 MiB: one rail {single:.2f} MB/s, two {both:.2f}"


def rounds(place, names, count):
    """busbw of all_reduce beside ib_write_bw -b, in turns."""
    wires = {size: [] for size in SIZES}
    ours = {name: {size: [] for size in SIZES} for name in names}
    for _ in range(count):
        for size in SIZES:
            wires[size].append(both_ways(place, size, max(FEWEST, 10 * MIB // size)))
        for name in names:
            for row in swept(place, name, "all_reduce -b 256K -e 4M -f 4 -n 5 -w 1"):
                ours[name][row["bytes"]].append(row["busbw"] * 1000)
    return wires, ours


def bands(place, names, count):
    """Medians of bandwidth; Failed where verbs is below its bar."""
    wires, ours = rounds(place, names, count)
    text, below = f"median of {count} rounds, busbw of all_reduce in MB/s:", []
    for size in SIZES:
        half = median(wires[size]) / 2
        text += f"\n     {size >> 10} KiB: ib_write_bw -b / 2 = {half:.2f}"
        for name in names:
            busbw = median(ours[name][size])
            text += f", {name} {busbw:.2f} ({busbw / half:.2f})"
            if name == "verbs" and busbw < BAND * half:
                below.append(f"{size >> 10} KiB")
    if below:
        raise Failed(f"verbs is below {BAND} at {', '.join(below)}; {text}")
    return text


def delays(place, names, count):
    """An 8-byte all_reduce beside ib_write_lat, in turns."""
    raw, ours = [], {name: [] for name in names}
    for _ in range(count):
        raw.append(delay(place, 500))
        for name in names:
            ours[name].append(swept(place, name, "all_reduce -b 8 -e 8 -n 200")[0]["time_us"])
    text = f"median of {count} rounds: ib_write_lat {median(raw):.1f} us, all_reduce of 8 B: " + \
        ", ".join(f"{name} {median(times):.1f} us" for name, times in ours.items())
    if "verbs" in ours and median(ours["verbs"]) > DELAY * median(raw):
        raise Failed(f"verbs takes more than {DELAY} times ib_write_lat; {text}")
    return text
