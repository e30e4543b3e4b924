/* SPDX-License-Identifier: Apache-2.0
 *
 * timers: computes DeepSpeed's five timers of an update, in seconds, from the parts of its time.
 */
#ifndef TRAIN_TIMERS_H
#define TRAIN_TIMERS_H

#include "report.h"

typedef struct report_timers {
    double forward;
    double backward; /* backward_inner + backward_allreduce */
    double backward_inner, backward_allreduce;
    double step;
} report_timers;

/** Computes the timers. The time of gathering parameters is part of the forward pass in ZeRO stage
 * 3, and part of the step otherwise. */
report_timers timers_of(const report_run *run, const report_times *times);

#endif
