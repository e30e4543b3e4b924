/* SPDX-License-Identifier: Apache-2.0
 * Adds up the times of updates, and converts them to shares of the whole time. */
#include "breakdown.h"

#include <math.h>
#include <string.h>

const char *const part_names[PARTS] = {
    [PART_DATA] = "data",         [PART_FORWARD] = "forward", [PART_BACKWARD] = "backward",
    [PART_STEP] = "step",         [PART_WAIT] = "wait",       [PART_BUBBLE] = "bubble_wait",
    [PART_TRANSFER] = "transfer", [PART_REDUCE] = "reduce",   [PART_OTHER] = "other",
};

void breakdown_add(report_times *sum, const report_times *more)
{
    for (int p = 0; p < PARTS; p++)
        sum->parts[p] += more->parts[p];
    for (int d = 0; d < DETAILS; d++)
        sum->details[d] += more->details[d];
    sum->reduce_wait += more->reduce_wait;
    sum->reducing += more->reducing;
}

double breakdown_total(const report_times *times)
{
    double total = 0.0;
    for (int p = 0; p < PARTS; p++)
        total += times->parts[p];
    return total;
}

/* Rounds each share down, then adds one of the missing tenths to each of the parts that rounding
 * changed most, so that the sum of the shares is 1000. */
void breakdown_tenths(const report_times *times, int tenths[PARTS])
{
    const double total = breakdown_total(times);
    double lost[PARTS];
    int missing = 1000;
    memset(tenths, 0, PARTS * sizeof *tenths);
    for (int p = 0; p < PARTS && total > 0.0; p++) {
        const double exact = 1000.0 * times->parts[p] / total;
        tenths[p] = (int)floor(exact);
        lost[p] = exact - tenths[p];
        missing -= tenths[p];
    }
    for (; missing > 0 && total > 0.0; missing--) {
        int most = 0;
        for (int p = 1; p < PARTS; p++)
            most = lost[p] > lost[most] ? p : most;
        lost[most] = -1.0;
        tenths[most]++;
    }
}

double breakdown_overlap(const report_times *times)
{
    if (times->reducing <= 0.0)
        return -1.0;
    const double busy = times->reduce_wait + times->parts[PART_REDUCE];
    return busy < times->reducing ? 1.0 - busy / times->reducing : 0.0;
}
