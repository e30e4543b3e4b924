/* SPDX-License-Identifier: Apache-2.0
 * /proc and getrusage(). */
#include "device_use.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "sysfs.h"

double device_resident(void)
{
    char line[64];
    unsigned long pages = 0;
    if (sysfs_line(line, sizeof line, "/proc/self/statm"))
        sscanf(line, "%*u %lu", &pages);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

double device_peak(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024.0;
}

static double seconds(const struct timeval *time)
{
    return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

report_device device_use(device_clock *clock)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const device_clock before = *clock;
    *clock = (device_clock){train_now(), seconds(&usage.ru_utime) + seconds(&usage.ru_stime)};
    const double wall = clock->wall - before.wall;
    return (report_device){.resident = device_resident(),
                           .peak = device_peak(),
                           .cpu = wall > 0.0 ? (clock->processor - before.processor) / wall : 0.0};
}
