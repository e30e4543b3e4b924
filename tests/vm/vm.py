#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guests with InfiniBand devices made of software (Soft-RoCE), on a machine that has none.

    vm.py quick                  what ctest runs: training and collectives in one guest
    vm.py cases                  short lists of cases in a pair of guests
    vm.py full [--data DIR]      the long lists; DIR holds MNIST
    vm.py run COMMAND            in a guest a; with --two there is also b, reached by ssh
    vm.py run --both COMMAND     in a and b at the same time; VM_NAME tells them apart
    vm.py shell [--two]          reads commands for guest a; 'b COMMAND' runs it in b

A guest has the host's files, which it cannot change: what it writes is lost with it.
"""

import argparse
import signal
import sys
import time
from pathlib import Path

import vm_cases
import vm_faults
import vm_figures
import vm_packages
from vm_guest import Failed, Lab
from vm_places import Place, SshPlace, shape

SOURCE = Path(__file__).resolve().parents[2]
# Weakest first; what a build or a guest lacks is skipped with the reason.
REMOTE = ("tcp", "ucx", "verbs")
# Ranks of one host know each other by the loopback's address, where rdma_cm has no way, nor ucx.
LOCAL = ("shm", "tcp", "verbs")
RATE = "16mbit"  # so that the wire is what limits, not the emulated processors
QUICK_SECONDS, CASES_SECONDS, FULL_SECONDS = 600, 1700, 10800
ROUNDS = 7
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


class OutOfTime(BaseException):
    """The whole run takes too long."""


def note(text):
    print(f"== {text}", file=sys.stderr, flush=True)


def lab(options, names, **more):
    chosen = {"nics": options.nics, "cpus": options.cpus, "memory": options.memory,
              "kvm": options.kvm, "share": options.share}
    return Lab(options.build, names, **(chosen | more))


def run(options):
    begin = time.monotonic()
    with lab(options, "ab" if options.both or options.two else "a") as made:
        note(f"booted in {time.monotonic() - begin:.1f} s")
        script = " ".join(options.command)
        guests = made.guests if options.both else made.guests[:1]
        jobs = [guest.start(script, options.timeout) for guest in guests]
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


def places(pair):
    return Place(pair.guests[0]), Place(*pair.guests), SshPlace(*pair.guests)


def faults(suite, place, names):
    for name in names:
        suite.case(f"two.{name}.replug", vm_faults.replug, place, name)
        suite.case(f"two.{name}.pull", vm_faults.pull, place, name)
    suite.case(f"two.{names[-1]}.kill", vm_faults.kill, place, names[-1])


def quick(options):
    """One guest: shared memory, and real verbs between its ranks."""
    suite, training = vm_cases.Suite(options.only), vm_cases.Training(5, 16, options.data)
    with lab(options, "a") as single:
        note(f"booted in {time.monotonic() - suite.begin:.1f} s")
        one = Place(single.guests[0])
        for name in suite.usable(one, ("shm", "verbs")):
            suite.case(f"one.{name}.train", training, one, name)
            suite.case(f"one.{name}.sweep", vm_cases.sweep, one, name, ("-b 256K -e 256K",), 1)
    return suite.status()


def cases(options):
    suite, training = vm_cases.Suite(options.only), vm_cases.Training(20, 16, options.data)
    ranges = ("-b 8 -e 64K -i 65528", "-b 1M -e 1M")
    with lab(options, "ab") as pair:
        note(f"booted in {time.monotonic() - suite.begin:.1f} s")
        shape(pair.guests, RATE)
        one, two, ssh = places(pair)
        for place, transports in ((one, LOCAL), (two, REMOTE)):
            suite.case(f"{place.name}.wire", vm_figures.wire, place)
            for name in suite.usable(place, transports):
                suite.case(f"{place.name}.{name}.train", training, place, name)
                suite.case(f"{place.name}.{name}.sweep", vm_cases.sweep, place, name, ranges, 5)
        names = two.usable(REMOTE)
        suite.case(f"ssh.{names[-1]}.four", vm_cases.four_ranks, ssh, names[-1])
        faults(suite, two, names)
    return suite.status()


def full(options):
    suite, training = vm_cases.Suite(options.only), vm_cases.Training(200, 64, options.data)
    ranges = ("-b 8 -e 4M -f 2",)
    with lab(options, "a") as single:
        one = Place(single.guests[0])
        names = suite.usable(one, LOCAL)
        suite.case("one.delay", vm_figures.delays, one, names, ROUNDS)
        for name in names:
            suite.case(f"one.{name}.train", training, one, name)
            suite.case(f"one.{name}.sweep", vm_cases.sweep, one, name, ranges, 5)
    with lab(options, "ab") as pair:
        _, two, ssh = places(pair)
        names = suite.usable(two, REMOTE)
        suite.case("two.bandwidth", vm_figures.bands, two, names, ROUNDS)
        for name in names:
            suite.case(f"ssh.{name}.train", training, ssh, name)
            suite.case(f"two.{name}.sweep", vm_cases.sweep, two, name, ranges, 5)
            suite.case(f"ssh.{name}.four", vm_cases.four_ranks, ssh, name)
        if "verbs" in names:
            suite.case("ssh.doctor", vm_cases.doctor, ssh)
    with lab(options, "ab", nics=2) as pair:
        shape(pair.guests, RATE)
        two = places(pair)[1]
        suite.case("two.rails", vm_figures.rails, two)
        if two.usable(["verbs"]):
            suite.case("two.verbs.rails", vm_figures.verbs_rails, two)
            suite.case("two.verbs.cable", vm_faults.one_cable, two, "verbs")
    for name in names:
        with lab(options, "ab") as pair:
            shape(pair.guests, RATE)
            faults(suite, places(pair)[1], [name])
    return suite.status()


def absolute(text):
    return Path(text).resolve()


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
    parser.add_argument("--limit", type=int, help="seconds for everything")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    for do, limit in ((quick, QUICK_SECONDS), (cases, CASES_SECONDS), (full, FULL_SECONDS),
                      (run, 0), (shell, 0)):
        action = actions.add_parser(do.__name__)
        action.set_defaults(do=do, seconds=limit)
        if limit:
            action.add_argument("--only", default="", metavar="REGEX", help="cases to run")
            action.add_argument("--data", type=absolute, help="folder with MNIST")
        else:
            action.add_argument("--two", action="store_true", help="boot b, too")
    run_words = actions.choices["run"]
    run_words.add_argument("--both", action="store_true", help="run the command in both")
    run_words.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args()


def interrupted(number, _):
    """Ends everything; the guests are removed on the way out, whatever comes meanwhile."""
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    if number == signal.SIGALRM:
        raise OutOfTime
    raise SystemExit(128 + number)


def main():
    for number in SIGNALS:
        signal.signal(number, interrupted)
    options = parsed()
    limit = options.limit or options.seconds
    signal.alarm(limit)
    try:
        return options.do(options)
    except vm_packages.Missing as why:
        print(f"SKIPPED: {why}")
        return 77
    except Failed as why:
        print(f"FAILED: {why}")
    except OutOfTime:
        print(f"FAILED: not done in {limit} s")
    return 1


if __name__ == "__main__":
    sys.exit(main())
