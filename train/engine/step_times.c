/* SPDX-License-Identifier: Apache-2.0
 * Sums, and a line of the trace for each. */
#include "step_times.h"

void step_times_ran(step_times *times, const step_instruction *at, double begin, double end)
{
    times->busy[at->kind] += end - begin;
    if (at->kind == STEP_REDUCE && at->bucket == BUCKET_TIES)
        times->ties += end - begin;
    pass_times_ran(times->passes, at, begin, end);
    step_trace_span(times->trace, "", at, begin, end);
}

void step_times_moved(step_times *times, const step_instruction *at, double begin, double end)
{
    times->busy[at->kind] += end - begin;
}

void step_times_waited(step_times *times, const step_instruction *at, double begin, double end)
{
    times->waited[at->kind] += end - begin;
    step_trace_span(times->trace, "wait for ", at, begin, end);
}

static bool reduces_gradients(const step_instruction *at)
{
    return at->kind == STEP_REDUCE && at->bucket != BUCKET_LOSS;
}

void step_times_left(step_times *times, const step_instruction *at, int number, double when)
{
    step_trace_wire(times->trace, at, number, true, when);
    if (reduces_gradients(at) && times->reductions++ == 0)
        times->reducing_since = when;
}

void step_times_arrived(step_times *times, const step_instruction *at, int number, double when)
{
    step_trace_wire(times->trace, at, number, false, when);
    if (reduces_gradients(at) && --times->reductions == 0)
        times->reducing += when - times->reducing_since;
}
