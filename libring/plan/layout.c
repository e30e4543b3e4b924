/* SPDX-License-Identifier: Apache-2.0
 * Layout: which elements a chunk is, for a call of a given count. */
#include "plan.h"

/* Part @p index of @p parts of a vector; the first count % parts are one longer. */
static plan_span part(size_t count, size_t parts, size_t index)
{
    const size_t length = count / parts, longer = count % parts;
    return (plan_span){.offset = index * length + min_size(index, longer),
                       .count = length + (index < longer ? 1 : 0)};
}

/* The buffer that holds all ranks' blocks; the other one holds a single block. */
static bool has_all_blocks(plan_collective collective, plan_buffer buffer)
{
    return collective == PLAN_REDUCE_SCATTER ? buffer != PLAN_DST : buffer == PLAN_DST;
}

/* A vector without blocks is one block. */
plan_span plan_span_of(const plan_layout *layout, plan_buffer buffer, int chunk)
{
    const int parts = layout->chunks / plan_blocks(layout->collective, layout->ranks);
    plan_span span = part(layout->count, (size_t)parts, (size_t)(chunk % parts));
    if (has_all_blocks(layout->collective, buffer))
        span.offset += (size_t)(chunk / parts) * layout->count;
    return span;
}
