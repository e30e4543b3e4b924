/* SPDX-License-Identifier: Apache-2.0
 *
 * device_use: what the operating system says that this process uses.
 */
#ifndef TRAIN_DEVICE_USE_H
#define TRAIN_DEVICE_USE_H

#include "report.h"

/** @param[out] resident, peak  bytes of memory, now and at most; the peak is never below what is
 *  resident, although the system may count it later. */
void device_memory(double *resident, double *peak);

/** Processor time up to some moment. All zero: since the process began. */
typedef struct device_clock {
    double wall, processor; /* seconds */
} device_clock;

/** @return the use of this process; of the processor since @p clock, which is set to now. */
report_device device_use(device_clock *clock);

#endif
