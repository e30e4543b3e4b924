/* SPDX-License-Identifier: Apache-2.0
 *
 * device_use: measures how much memory and processor time this process uses.
 */
#ifndef TRAIN_DEVICE_USE_H
#define TRAIN_DEVICE_USE_H

#include "report.h"

/** Measures the memory of this process.
 *  @param[out] resident, peak  bytes in memory now, and the most so far. The kernel updates its
 * peak late, so peak is at least resident. */
void device_memory(double *resident, double *peak);

/** A point in time, and the processor time used until then. All zero: the start of the process. */
typedef struct device_clock {
    double wall, processor; /* seconds */
} device_clock;

/** @return the memory of this process, and its use of the processor since @p clock. Sets @p clock
 * to now. */
report_device device_use(device_clock *clock);

#endif
