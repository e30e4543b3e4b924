/* SPDX-License-Identifier: Apache-2.0
 * Measures a pass from the start of its first instruction to the end of its last one. */
#include "pass_times.h"

#include <string.h>

void pass_times_start(pass_times *passes, int micro_batches)
{
    passes->micro_batches = micro_batches;
    memset(passes->spans, 0, 2 * (size_t)micro_batches * sizeof *passes->spans);
}

void pass_times_ran(pass_times *passes, const update_instruction *at, double begin, double end)
{
    if (passes == NULL || (at->kind != UPDATE_FORWARD && at->kind != UPDATE_BACKWARD))
        return;
    const bool back = at->kind == UPDATE_BACKWARD || at->recompute;
    pass_span *span = &passes->spans[2 * at->micro + back];
    if (span->end == 0.0)
        span->begin = begin;
    span->end = end;
}
