/* SPDX-License-Identifier: Apache-2.0
 * Reads the memory of this process from /proc and its processor time from getrusage(). */
#include "device_use.h"

#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "sysfs.h"

void device_memory(double *resident, double *peak)
{
    char line[64];
    unsigned long pages = 0;
    struct rusage usage;
    if (sysfs_line(line, sizeof line, "/proc/self/statm"))
        sscanf(line, "%*u %lu", &pages);
    getrusage(RUSAGE_SELF, &usage);
    *resident = (double)pages * (double)sysconf(_SC_PAGESIZE);
    *peak = fmax(*resident, (double)usage.ru_maxrss * 1024.0);
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
    report_device use = {.cpu = wall > 0.0 ? (clock->processor - before.processor) / wall : 0.0};
    device_memory(&use.resident, &use.peak);
    return use;
}
