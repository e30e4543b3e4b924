# SPDX-License-Identifier: Apache-2.0
"""Cases that must pass in guests: right values and the same training over every transport, carried
by the requested devices. The faults are in vm_faults.py, the figures in vm_figures.py."""

import json
import re
import subprocess
import time
from pathlib import Path

from vm_guest import Failed
from vm_places import settings, traffic

SOURCE = Path(__file__).resolve().parents[2]
CONFIG = SOURCE / "docs/examples/mnist/deeps.json"
PARAMETERS = 218058
DRAW_SECONDS = 120
SWEPT = ("all_reduce", "reduce_scatter", "all_gather", "sendrecv")


class Suite:
    """Runs the cases whose names match, one line each."""

    def __init__(self, only=""):
        self.only = only
        self.begin = time.monotonic()
        self.passed = self.failed = self.skipped = 0

    def say(self, verdict, name, begin, text):
        print(f"{verdict:4} {name:18} {time.monotonic() - begin:6.1f} s  {text}", flush=True)

    def case(self, name, act, place, *what):
        """act(place, ...) returns what to say, or raises Failed."""
        if not re.search(self.only, name):
            return
        begin = time.monotonic()
        try:
            self.say("ok", name, begin, act(place, *what))
            self.passed += 1
        except Failed as why:
            self.say("FAIL", name, begin, why)
            self.failed += 1
            self.clear(place.guests)

    def clear(self, guests):
        for guest in guests:
            try:
                guest.clear()
            except (Failed, OSError) as why:
                print(f"     guest {guest.name} is lost: {why}")

    def usable(self, place, transports):
        """Those that can be used there; a line for each other one."""
        for name in transports:
            if place.why_not(name):
                self.skipped += 1
                self.say("SKIP", f"{place.name}.{name}", time.monotonic(), place.why_not(name))
        return place.usable(transports)

    def status(self):
        seconds = time.monotonic() - self.begin
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped "
              f"in {seconds:.0f} s")
        return 1 if self.failed or not self.passed else 0


class Training:
    """ringtrain, as many steps by each transport; all must give the same bits."""

    def __init__(self, steps, batch, data=None):
        self.steps, self.batch, self.data = steps, batch, data
        self.first = None  # name, losses and parameters of the first run

    def folder(self, guest):
        """The data, drawn where none were given: enough for the steps."""
        if self.data:
            return self.data
        drawn = guest.work / "digits"
        if not drawn.exists():
            subprocess.run([guest.programs / "ringdigits", drawn, "--train",
                            str(2 * self.batch * self.steps), "--test", "100"], check=True,
                           timeout=DRAW_SECONDS, stdout=subprocess.DEVNULL)
        return drawn

    def config(self, guest):
        """The example's configuration with this batch."""
        file = guest.work / "config.json"
        file.write_text(json.dumps(json.loads(CONFIG.read_text(encoding="utf-8")) |
                                   {"train_micro_batch_size_per_gpu": self.batch}))
        return file

    def __call__(self, place, transport):
        guest = place.guests[0]
        name = f"{place.name}.{transport}"
        files = guest.work / name
        before = traffic(guest)
        place.run(settings(transport), f"ringtrain --deepspeed_config {self.config(guest)} "
                  f"--data {self.folder(guest)} --max-steps {self.steps} "
                  f"--metrics {files}.jsonl --dump-params {files}", seconds=60 + 4 * self.steps)
        sent = traffic(guest) - before
        # Of two ranks, each sends half of the gradients and half of the sums.
        place.check_carrier(transport, sent, self.steps * PARAMETERS * 4)
        return f"{self.compare(name, files)}; {sent}"

    def compare(self, name, files):
        lines = Path(f"{files}.jsonl").read_text(encoding="utf-8").splitlines()
        losses = [(line["loss"], line["grad_norm"]) for line in map(json.loads, lines)
                  if "step" in line]
        ranks = [Path(f"{files}.{rank}").read_bytes() for rank in (0, 1)]
        if len(losses) != self.steps or ranks[0] != ranks[1]:
            raise Failed(f"{name}: {len(losses)} losses; the parameters of the ranks are "
                         f"{'equal' if ranks[0] == ranks[1] else 'not equal'}")
        if self.first is None:
            self.first = name, losses, ranks[0]
        first, its_losses, its_parameters = self.first
        if losses != its_losses or ranks[0] != its_parameters:
            raise Failed(f"{name} trains otherwise than {first}: in the last step the losses are "
                         f"{losses[-1][0]} and {its_losses[-1][0]}")
        same = "" if first == name else f", bit for bit as {first}"
        return f"{self.steps} steps, loss {losses[0][0]:.6f} -> {losses[-1][0]:.6f}{same}"


def swept(place, transport, options, each=None, more=None):
    """Rows of one ringperf, checked; `more` is for its environment."""
    file = place.guests[0].work / "rows.jsonl"
    file.unlink(missing_ok=True)
    place.run(settings(transport, more), f"ringperf {options} --json {file}", each, seconds=240)
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    used = transport.replace(",", "+")
    wrong = [row for row in rows if row["wrong"] != 0 or row["transport"] != used]
    if wrong or not rows:
        raise Failed(f"ringperf {options}: {wrong or 'no rows'}")
    return [row for row in rows if not row["in_place"]]


def sweep(place, transport, ranges, calls):
    """Collectives of several sizes with every value checked."""
    before = traffic(place.guests[0])
    said, largest = [], 0
    for collective in SWEPT:
        rows = []
        for sizes in ranges:
            rows += swept(place, transport, f"{collective} {sizes} -n {calls} -w 0 -c 1")
        largest = max(row["bytes"] for row in rows)
        said.append(f"{collective} " + " ".join(f"{row['time_us']:.0f}" for row in rows))
    sent = traffic(place.guests[0]) - before
    # Of S bytes, two ranks send S, S/2, S/2 and S; checked and in-place calls come on top.
    place.check_carrier(transport, sent, 3 * largest * calls)
    return f"0 wrong; us: {', '.join(said)}; {sent}"


def four_ranks(place, transport):
    """Two ranks in each guest: shm inside, the transport between."""
    size, calls = 1 << 20, 3
    before = traffic(place.guests[0])
    row = swept(place, f"shm,{transport}", f"all_reduce -b {size} -e {size} -n {calls} -w 0 -c 1",
                each=2)[0]
    sent = traffic(place.guests[0]) - before
    share = sent.wire / (2 * (calls + 1) * size)  # with the checked calls, each in place, too
    return (f"0 wrong; {row['ranks']} ranks, {row['transport']}, {row['algorithm']}: guest a sent "
            f"{share:.2f} of the vector a call; {sent}")


def doctor(place):
    """ringinfo doctor: ports by themselves, and the two hosts by jobs over TCP and RDMA."""
    report = place.guests[0].run("ringinfo doctor --hosts a,b --json || test $? -le 3")
    rows = {(row["section"], row["name"]): row for row in json.loads(report)["findings"]}
    tested = {name: rows.get(("pairs", f"a - b {name}")) for name in
              ("reach", "time", "speed", "rdma time", "rdma speed")}
    broken = [row for row in rows.values() if row["level"] == "fail"]
    if broken or None in tested.values():
        raise Failed(f"the doctor of a and b: {broken or tested}")
    return ", ".join(f"{name} {row['value']}" for name, row in tested.items())
