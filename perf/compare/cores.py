# SPDX-License-Identifier: Apache-2.0
"""Binds a rank to the core that ringrun --bind-to core would give it."""

import os


def read(path):
    with open(path) as file:
        return int(file.read())


def cores():
    """@return the CPUs of each core that this process may use, in ringrun's order."""
    places = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        about = f"/sys/devices/system/cpu/cpu{cpu}/topology"
        try:
            place = read(f"{about}/physical_package_id"), read(f"{about}/core_id")
        except OSError:
            place = 0, cpu
        places.setdefault(place, []).append(cpu)
    in_order = sorted((package, cpus) for (package, _), cpus in places.items())
    return [cpus for _, cpus in in_order]


def stay_on_a_core(rank, ranks):
    """Binds the process to a core, if there is one for each rank. Called before torch is imported,
    so that the threads that torch starts are bound, too."""
    available = cores()
    if ranks <= len(available):
        os.sched_setaffinity(0, available[rank])
