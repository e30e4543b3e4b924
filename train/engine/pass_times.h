/* SPDX-License-Identifier: Apache-2.0
 *
 * pass_times: records when each forward and backward pass of one update ran on this rank.
 */
#ifndef TRAIN_PASS_TIMES_H
#define TRAIN_PASS_TIMES_H

#include "update_schedule.h"

/** Times are of train_now(); 0: not yet. */
typedef struct pass_span {
    double begin, end;
} pass_span;

typedef struct pass_times {
    pass_span *spans; /* [micro_batches][2] forward and backward; has room for the largest update */
    int micro_batches;
} pass_times;

/** Forgets the last update; the next one has @p micro_batches. */
void pass_times_start(pass_times *passes, int micro_batches);

/** Records that an instruction ran. If a pass has several parts, the first one begins it and the
 *  last one ends it; activations that are recomputed count as backward.
 *  @param passes NULL: nothing is recorded. */
void pass_times_ran(pass_times *passes, const update_instruction *at, double begin, double end);

#endif
