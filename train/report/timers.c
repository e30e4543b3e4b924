/* SPDX-License-Identifier: Apache-2.0
 * Adds up the parts of the time for each of DeepSpeed's timers. */
#include "timers.h"

report_timers timers_of(const report_run *run, const report_times *times)
{
    const double *parts = times->parts;
    const double gather = parts[PART_TRANSFER] + parts[PART_WAIT] - times->reduce_wait;
    const double allreduce = parts[PART_REDUCE] + times->reduce_wait;
    const bool for_passes = run->config->zero_stage == 3;
    return (report_timers){.forward = parts[PART_FORWARD] + (for_passes ? gather : 0.0),
                           .backward = parts[PART_BACKWARD] + allreduce,
                           .backward_inner = parts[PART_BACKWARD],
                           .backward_allreduce = allreduce,
                           .step = parts[PART_STEP] + (for_passes ? 0.0 : gather)};
}
