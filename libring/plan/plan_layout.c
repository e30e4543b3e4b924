/* SPDX-License-Identifier: Apache-2.0
 * Computes the elements that a range of chunks covers in a buffer, for a call of a given count. */
#include "plan.h"

/* @return the first element of a chunk in the vector of all blocks. For the number after the last
 * chunk, it is the end of the vector. @p parts  chunks of a block. */
static size_t begin_of(const plan_layout *layout, size_t parts, size_t chunk)
{
    const size_t length = layout->count / parts, longer = layout->count % parts;
    const size_t part = chunk % parts;
    return chunk / parts * layout->count + part * length + min_size(part, longer);
}

/* @return the number of blocks that precede block @p block in the buffer of the rank that has
 * it. */
static size_t blocks_before(const plan_layout *layout, plan_buffer buffer, size_t block)
{
    const plan_facts *facts = plan_facts_of(layout->collective);
    const bool of_pairs = facts->src_blocks && facts->dst_blocks;
    const size_t ranks = (size_t)layout->ranks;
    if (buffer == PLAN_SRC)
        return of_pairs ? block % ranks : facts->src_blocks ? block : 0;
    if (buffer == PLAN_DST)
        return of_pairs ? block / ranks : facts->dst_blocks ? block : 0;
    return block;
}

/* ---- Blocks of different lengths -------------------------------------------------------- */

/* @return the length of a block that this rank sends or receives. */
static size_t uneven_count(const plan_layout *layout, size_t block)
{
    const plan_shape *shape = layout->shape;
    const size_t ranks = (size_t)layout->ranks, *src = shape->counts[PLAN_SRC],
                 *dst = shape->counts[PLAN_DST];
    if (src != NULL && dst != NULL)
        return block / ranks == (size_t)shape->rank ? src[block % ranks] : dst[block / ranks];
    if (src == NULL && dst == NULL)
        return shape->own;
    return src != NULL ? src[block] : dst[block];
}

static plan_span uneven_span(const plan_layout *layout, plan_buffer buffer, size_t parts,
                             size_t chunk, size_t chunks)
{
    const size_t block = chunk / parts, part = chunk % parts;
    const size_t in_buffer = blocks_before(layout, buffer, block);
    const bool has_displs = buffer == PLAN_SRC || buffer == PLAN_DST;
    const size_t *displs = has_displs ? layout->shape->displs[buffer] : NULL;
    const plan_layout alone = {.count = uneven_count(layout, block)};
    const size_t begin = begin_of(&alone, parts, part);
    return (plan_span){.offset = (displs != NULL ? displs[in_buffer] : 0) + begin,
                       .count = begin_of(&alone, parts, part + chunks) - begin,
                       .block = in_buffer};
}

plan_span plan_span_of(const plan_layout *layout, plan_buffer buffer, int chunk, int chunks)
{
    const size_t blocks = (size_t)plan_blocks(layout->collective, layout->ranks);
    const size_t parts = (size_t)layout->chunks / blocks;
    if (layout->shape != NULL)
        return uneven_span(layout, buffer, parts, (size_t)chunk, (size_t)chunks);
    const size_t begin = begin_of(layout, parts, (size_t)chunk);
    const size_t end = begin_of(layout, parts, (size_t)chunk + (size_t)chunks);
    const size_t block = (size_t)chunk / parts;
    return (plan_span){.offset = begin -
                                 (block - blocks_before(layout, buffer, block)) * layout->count,
                       .count = end - begin};
}
