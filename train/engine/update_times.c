/* SPDX-License-Identifier: Apache-2.0
 * Adds up durations by the kind of instruction, and tracks when reductions are in flight. */
#include "update_times.h"

void update_times_ran(update_times *times, const update_instruction *at, double begin, double end)
{
    times->busy[at->kind] += end - begin;
    if (at->kind == UPDATE_REDUCE && at->bucket == BUCKET_TIES)
        times->ties += end - begin;
    pass_times_ran(times->passes, at, begin, end);
    update_trace_span(times->trace, "", at, begin, end);
}

void update_times_moved(update_times *times, const update_instruction *at, double begin, double end)
{
    times->busy[at->kind] += end - begin;
}

void update_times_waited(update_times *times, const update_instruction *at, double begin,
                         double end)
{
    times->waited[at->kind] += end - begin;
    update_trace_span(times->trace, "wait for ", at, begin, end);
}

static bool reduces_gradients(const update_instruction *at)
{
    return at->kind == UPDATE_REDUCE && at->bucket != BUCKET_LOSS;
}

void update_times_started(update_times *times, const update_instruction *at, int number,
                          double when)
{
    update_trace_wire(times->trace, at, number, true, when);
    if (reduces_gradients(at) && times->reductions++ == 0)
        times->reducing_since = when;
}

void update_times_ended(update_times *times, const update_instruction *at, int number, double when)
{
    update_trace_wire(times->trace, at, number, false, when);
    if (reduces_gradients(at) && --times->reductions == 0)
        times->reducing += when - times->reducing_since;
}
