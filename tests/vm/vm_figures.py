# SPDX-License-Identifier: Apache-2.0
"""perftest in the guests, which is what the wire gives, and libring's figures beside it."""

import math
from statistics import median

from vm_cases import swept
from vm_guest import Failed

MIB = 1 << 20
# The time-out of perftest's queue pairs is 67 ms, which a shaped or busy wire exceeds, and the
# rxe of Linux 6.1 answers what is then sent twice with an error; 20 is 4.3 s.
PATIENT = "-x 1 -u 20"
PORT = 18515
SIZES = (256 << 10, 1 << 20, 4 << 20)
BAND, DELAY = 0.85, 1.5  # what verbs must reach of half of ib_write_bw -b; of ib_write_lat
TWO_RAILS = 1.6
TRIES = 5


class Perftest:
    """A program of perftest between two guests, or within one, over one rail (a NIC and its rxe
    device)."""

    def __init__(self, server, client, words, rail=0):
        program, _, options = words.partition(" ")
        self.words = f"{program} -d rxe{rail} -p {PORT + rail} {PATIENT} {options}"
        self.serving = server.start(self.words)
        server.run(f"until ss -ltnH 'sport = :{PORT + rail}' | grep -q .; do sleep 0.1; done")
        self.asking = client.start(f"{self.words} 10.88.{rail}.{server.node}")

    def row(self):
        """The columns of the last row of figures."""
        out = self.asking.must()
        self.serving.must()
        rows = [line.split() for line in out.splitlines() if line.strip()[:1].isdigit()]
        if not rows:
            raise Failed(f"{self.words} printed no figures:\n{out}")
        return [float(column) for column in rows[-1]]

    def bandwidth(self):
        """MB/s (10^6 bytes); with -b the sum of both directions."""
        return self.row()[3] * MIB / 1e6


def both_ways(place, size, calls):
    server, client = place.guests[0], place.guests[-1]
    return Perftest(server, client, f"ib_write_bw -b -s {size} -n {calls} -t 4").bandwidth()


def delay(place, calls=1000):
    """us of an 8-byte write: half of a round trip. On a busy machine perftest may fail to learn
    the rate of its clock; then its times are infinite."""
    server, client = place.guests[0], place.guests[-1]
    for _ in range(TRIES):
        typical = Perftest(server, client, f"ib_write_lat -s 8 -n {calls}").row()[4]
        if math.isfinite(typical):
            return typical
    raise Failed(f"ib_write_lat could not measure the clock in {TRIES} tries")


def pingpong(server, client):
    """The plainest program of libibverbs."""
    serving = server.start("ibv_rc_pingpong -g 1 -n 20")
    server.run(f"until ss -ltnH 'sport = :{PORT}' | grep -q .; do sleep 0.1; done")
    client.run(f"ibv_rc_pingpong -g 1 -n 20 {server.name}")
    serving.must()


def wire(place):
    """Soft-RoCE works, and what it gives."""
    pingpong(place.guests[0], place.guests[-1])
    return (f"ib_write_bw -b 1 MiB {both_ways(place, MIB, 5):.1f} MB/s summed; "
            f"ib_write_lat 8 B {delay(place, 200):.0f} us")


def rails(place):
    """Two rails of shaped NICs carry at the same time."""
    server, client = place.guests
    words = f"ib_write_bw -s {MIB} -n 10 -t 4"
    single = Perftest(server, client, words).bandwidth()
    pair = [Perftest(server, client, words, rail) for rail in (0, 1)]
    both = sum(test.bandwidth() for test in pair)
    if both < TWO_RAILS * single:
        raise Failed(f"one rail {single:.2f} MB/s, two {both:.2f}")
    return f"ib_write_bw 1 MiB: one rail {single:.2f} MB/s, two at once {both:.2f}"


def rounds(place, names, count):
    """busbw of all_reduce beside ib_write_bw -b, in turns."""
    wires = {size: [] for size in SIZES}
    ours = {name: {size: [] for size in SIZES} for name in names}
    for _ in range(count):
        for size in SIZES:
            wires[size].append(both_ways(place, size, 10))
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
        raw.append(delay(place))
        for name in names:
            ours[name].append(swept(place, name, "all_reduce -b 8 -e 8 -n 500")[0]["time_us"])
    text = f"median of {count} rounds: ib_write_lat {median(raw):.1f} us, all_reduce of 8 B: " + \
        ", ".join(f"{name} {median(times):.1f} us" for name, times in ours.items())
    if "verbs" in ours and median(ours["verbs"]) > DELAY * median(raw):
        raise Failed(f"verbs takes more than {DELAY} times ib_write_lat; {text}")
    return text
