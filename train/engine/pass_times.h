/* SPDX-License-Identifier: Apache-2.0
 *
 * pass_times: records when each forward and backward pass of one update ran on this rank.
 */
#ifndef TRAIN_PASS_TIMES_H
#define TRAIN_PASS_TIMES_H

#include "update_schedule.h"

/** Begin and end of a pass by train_now(); both are 0 until the pass begins. */
typedef struct pass_span {
    double begin, end;
} pass_span;

typedef struct pass_times {
    pass_span *spans; /* [micro_batches][2] forward and backward; has room for the largest update */
    int micro_batches;
} pass_times;

/** Clears all spans before an update of @p micro_batches micro-batches. */
void pass_times_start(pass_times *passes, int micro_batches);

/** Records that an instruction ran from @p begin to @p end. If a pass has several instructions, it
 *  lasts from the begin of the first one to the end of the last one. Recomputing activations counts
 *  as part of the backward pass.
 *  @param passes  NULL: nothing is recorded. */
void pass_times_ran(pass_times *passes, const update_instruction *at, double begin, double end);

#endif
