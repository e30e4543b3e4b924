/* SPDX-License-Identifier: Apache-2.0
 *
 * device_use: reads from the operating system how much memory and processor time this process uses.
 */
#ifndef TRAIN_DEVICE_USE_H
#define TRAIN_DEVICE_USE_H

#include "report.h"

/** @param[out] resident, peak  bytes of memory, now and at most. The peak is never below the
 *  resident size, although the system updates its own peak later. */
void device_memory(double *resident, double *peak);

/** A moment, and the processor time used up to it. All zero: the start of the process. */
typedef struct device_clock {
    double wall, processor; /* seconds */
} device_clock;

/** @return the memory of this process, and its use of the processor since @p clock, which becomes
 *  now. */
report_device device_use(device_clock *clock);

#endif
