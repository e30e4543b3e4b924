/* SPDX-License-Identifier: Apache-2.0
 * Checks which instructions of a list wait for which. */
#ifndef TESTS_TRAIN_UPDATE_ORDER_H
#define TESTS_TRAIN_UPDATE_ORDER_H

#include <update_schedule.h>

#include "check.h"

/* Whether @p earlier must have ended before @p number begins: directly, by way of others, or
 * because computations end in their order. */
static inline bool waits_for(const update_schedule *schedule, int number, int earlier)
{
    const update_instruction *at = &schedule->list[number];
    if (at->after_all)
        return earlier < number;
    for (int i = 0; i < at->after_count; i++) {
        if (at->after[i] == earlier || waits_for(schedule, at->after[i], earlier))
            return true;
    }
    return at->queue == QUEUE_COMPUTE && schedule->list[earlier].queue == QUEUE_COMPUTE &&
           earlier < number;
}

static inline void expect_waits(const update_schedule *schedule, int number, int earlier)
{
    if (earlier >= 0 && !waits_for(schedule, number, earlier))
        fail_msg("instruction %d (%s) does not wait for %d (%s)", number,
                 update_kind_names[schedule->list[number].kind], earlier,
                 update_kind_names[schedule->list[earlier].kind]);
}

#endif
