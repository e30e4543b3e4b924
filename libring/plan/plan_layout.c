/* SPDX-License-Identifier: Apache-2.0
 * Layout: which elements a chunk is, for a call of a given count. */
#include "plan.h"

/* Where a chunk begins in the vector of all blocks; the one behind the last: where it ends. */
static size_t begin_of(const plan_layout *layout, size_t parts, size_t chunk)
{
    const size_t length = layout->count / parts, longer = layout->count % parts;
    const size_t part = chunk % parts;
    return chunk / parts * layout->count + part * length + min_size(part, longer);
}

static bool is_own_block_alone(const plan_layout *layout, plan_buffer buffer)
{
    const plan_facts *facts = plan_facts_of(layout->collective);
    return (buffer == PLAN_SRC && !facts->src_blocks) || (buffer == PLAN_DST && !facts->dst_blocks);
}

plan_span plan_span_of(const plan_layout *layout, plan_buffer buffer, int chunk, int chunks)
{
    const size_t blocks = (size_t)plan_blocks(layout->collective, layout->ranks);
    const size_t parts = (size_t)layout->chunks / blocks;
    const size_t begin = begin_of(layout, parts, (size_t)chunk);
    const size_t end = begin_of(layout, parts, (size_t)chunk + (size_t)chunks);
    const size_t block = (size_t)chunk / parts * layout->count;
    return (plan_span){.offset = is_own_block_alone(layout, buffer) ? begin - block : begin,
                       .count = end - begin};
}
