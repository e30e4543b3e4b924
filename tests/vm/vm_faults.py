# SPDX-License-Identifier: Apache-2.0
"""Cables that are pulled and machines that vanish while ranks of two guests work."""

import contextlib
import re
import time

from vm_guest import Failed
from vm_places import settings, traffic

PEER_TIMEOUT = 4  # seconds, given to the ranks
SLACK = 20  # seconds on top until all ranks must have ended
OUTAGE = 2  # seconds that a cable is out and comes back in time
BEGIN_SECONDS = 60
MOVED = 1000000  # bytes on the wire: the ranks are at work


@contextlib.contextmanager
def unplugged(guests, **which):
    """All cables of both guests are out meanwhile, or those of the NICs that are named."""
    try:
        for guest in guests:
            guest.cables(False, **which)
        yield
    finally:
        for guest in guests:
            guest.cables(True, **which)


def outputs(jobs):
    return "\n".join(f"{job.guest.name}:\n{job.out}" for job in jobs)


def at_work(place, jobs):
    """Waits until the ranks' data flow."""
    end = time.monotonic() + BEGIN_SECONDS
    before = traffic(place.guests[0]).wire
    while traffic(place.guests[0]).wire < before + MOVED:
        if time.monotonic() > end or any(job.ended() for job in jobs):
            raise Failed(f"nothing moved before the fault:\n{outputs(jobs)}")
        time.sleep(0.2)


def replug(place, transport):
    """Both cables out and in again within the time-out: nobody notices."""
    jobs = place.start(settings(transport), "ringperf all_reduce -b 64K -e 64K -n 100")
    at_work(place, jobs)
    with unplugged(place.guests):
        time.sleep(OUTAGE)
        if any(job.ended() for job in jobs):
            raise Failed(f"ended while the cables were out:\n{outputs(jobs)}")
    plugged = time.monotonic()
    if any(job.wait().status for job in jobs):
        raise Failed(f"did not survive {OUTAGE} s without cables:\n{outputs(jobs)}")
    if "Out of bounds values : 0 OK" not in jobs[0].out:
        raise Failed(f"wrong values:\n{jobs[0].out}")
    return f"out for {OUTAGE} s; all values right {time.monotonic() - plugged:.1f} s later"


def one_cable(place, transport):
    """One of two rails out for good: what it carried goes over to the other one."""
    jobs = place.start(settings(transport, {"RING_IB_TIMEOUT": 17}),
                       "ringperf all_reduce -b 256K -e 256K -n 60")
    at_work(place, jobs)
    with unplugged(place.guests, nics=[1]):
        if any(job.wait().status for job in jobs):
            raise Failed(f"did not survive the loss of a rail:\n{outputs(jobs)}")
    if "Out of bounds values : 0 OK" not in jobs[0].out:
        raise Failed(f"wrong values:\n{jobs[0].out}")
    moved = re.search(r"rank \d now reaches rank \d over port rxe0:1 instead of rxe1:1",
                      outputs(jobs))
    if not moved:
        raise Failed(f"nobody changed the rail:\n{outputs(jobs)}")
    return f"{moved[0]}; all values right"


def told(job, other):
    """The first line that names a lost rank of the other guest. Who finds out last may be stopped
    by ringrun before it says so."""
    lines = [line for line in job.out.splitlines() if re.search(rf"rank \d+ \({other}[,)]", line)]
    lines = [line for line in lines if re.match(r"\[\d\]", line)]
    if not lines:
        raise Failed(f"no rank in {job.guest.name} named a rank of {other}:\n{job.out}")
    return lines[0]


def noticed(jobs):
    """Waits until all have ended with an error that names the other guest; what they said."""
    begin = time.monotonic()
    said = []
    for job in jobs:
        job.deadline = begin + PEER_TIMEOUT + SLACK
        if job.wait().status == 0:
            raise Failed(f"{job.guest.name} noticed nothing:\n{job.out}")
        took = time.monotonic() - begin
        other = "b" if job.guest.name == "a" else "a"
        said.append(f"{job.guest.name} after {took:.1f} s: {told(job, other)}")
    return "; ".join(said)


def four_at_work(place, transport):
    """Two ranks in each guest, which would go on for ever."""
    jobs = place.start(settings(f"shm,{transport}", {"RING_PEER_TIMEOUT": PEER_TIMEOUT}),
                       "ringperf all_reduce -b 64K -e 64K -n 100000", each=2)
    at_work(place, jobs)
    return jobs


def pull(place, transport):
    """Both cables out for good."""
    jobs = four_at_work(place, transport)
    with unplugged(place.guests):
        return noticed(jobs)


def kill(place, transport):
    """Guest b vanishes; nothing can be run there afterwards."""
    jobs = four_at_work(place, transport)
    place.guests[1].kill()
    return noticed(jobs[:1])
