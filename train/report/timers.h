/* SPDX-License-Identifier: Apache-2.0
 *
 * timers: DeepSpeed's five timers of an update, in seconds.
 */
#ifndef TRAIN_TIMERS_H
#define TRAIN_TIMERS_H

#include "report.h"

typedef struct report_timers {
    double forward;
    double backward; /* inner and allreduce */
    double backward_inner, backward_allreduce;
    double step;
} report_timers;

/** Parameters are gathered for passes in stage 3, in the step before that. */
report_timers timers_of(const report_run *run, const report_times *times);

#endif
