#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guests with InfiniBand devices made of software (Soft-RoCE), on a machine that has none.

    vm.py run [--both] COMMAND     in a guest a, with --both in a and b together
    vm.py shell [--two]            reads commands for guest a; 'b COMMAND' runs it in b
"""

import argparse
import signal
import sys
import time
from pathlib import Path

import vm_kernel
from vm_guest import Failed, Lab

SOURCE = Path(__file__).resolve().parents[2]


def lab(options, names):
    return Lab(options.build, names, options.nics, options.cpus, options.memory, options.kvm,
               options.share)


def note(text):
    print(f"== {text}", file=sys.stderr, flush=True)


def run(options):
    begin = time.monotonic()
    with lab(options, "ab" if options.both or options.two else "a") as made:
        note(f"booted in {time.monotonic() - begin:.1f} s")
        script = " ".join(options.command)
        jobs = [guest.start(script, options.timeout)
                for guest in (made.guests if options.both else made.guests[:1])]
        for job in jobs:
            if options.both:
                note(f"guest {job.guest.name}")
            job.wait(sys.stdout.buffer)
            sys.stdout.flush()
        return next((job.status for job in jobs if job.status), 0)


def shell(options):
    with lab(options, "ab" if options.two else "a") as made:
        names = {guest.name: guest for guest in made.guests}
        note("ready; 'a COMMAND' or 'b COMMAND', end with Ctrl-D")
        for line in sys.stdin:
            name, _, script = line.strip().partition(" ")
            if name not in names:
                name, script = "a", line.strip()
            status = names[name].start(script, options.timeout).wait(sys.stdout.buffer).status
            sys.stdout.flush()
            if status:
                note(f"ended with {status}")
    return 0


def parsed():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=SOURCE / "build", help="build tree")
    parser.add_argument("--nics", type=int, default=1, help="NICs, each with an rxe device")
    parser.add_argument("--cpus", type=int, default=2, help="processors of a guest")
    parser.add_argument("--memory", type=int, default=1024, help="MiB of a guest")
    parser.add_argument("--kvm", action="store_true", help="use /dev/kvm: other figures")
    parser.add_argument("--share", help="a folder that guests may write to")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for a command")
    actions = parser.add_subparsers(required=True)
    action = actions.add_parser("run")
    action.add_argument("--both", action="store_true")
    action.add_argument("--two", action="store_true")
    action.add_argument("command", nargs=argparse.REMAINDER)
    action.set_defaults(do=run)
    action = actions.add_parser("shell")
    action.add_argument("--two", action="store_true")
    action.set_defaults(do=shell)
    return parser.parse_args()


def interrupted(number, _):
    raise SystemExit(128 + number)


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    options = parsed()
    try:
        return options.do(options)
    except vm_kernel.Missing as why:
        print(f"SKIPPED: {why}")
        return 77
    except Failed as why:
        print(f"FAILED: {why}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
