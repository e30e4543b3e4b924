/* SPDX-License-Identifier: Apache-2.0
 * Which arrays of a bucket are cast to which, and when. */
#include "bucket_casts.h"

#include <string.h>

#include "element_casts.h"

void casts_load_params(const zero_memory *memory, int bucket)
{
    const zero_array *from = zero_gathered(memory, bucket), *to = zero_node_params(memory, bucket);
    if (from != to)
        cast_elements(zero_bucket(memory, to, bucket), to->type, zero_bucket(memory, from, bucket),
                      from->type, memory->partition->buckets[bucket].count);
}

void casts_keep_grads(const zero_memory *memory, int bucket, bool add)
{
    const zero_array *from = memory->node_grads, *to = &memory->grads;
    const size_t used = memory->partition->buckets[bucket].used;
    if (from == to || to->layout == LAYOUT_OWN)
        return;
    (add ? add_elements : cast_elements)(zero_bucket(memory, to, bucket), to->type,
                                         zero_bucket(memory, from, bucket), from->type, used);
}

void casts_send_grads(const zero_memory *memory, int bucket)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    const zero_array *to = memory->wire;
    const zero_array *from = memory->stage >= 2 ? memory->node_grads : &memory->grads;
    unsigned char *wire = zero_bucket(memory, to, bucket);
    const size_t size = precision_size(to->type);
    if (memory->stage >= 2 && memory->grads.type != RING_FLOAT32 && memory->grads.type != to->type)
        round_elements(zero_bucket(memory, from, bucket), memory->grads.type, at->used);
    if (from != to)
        cast_elements(wire, to->type, zero_bucket(memory, from, bucket), from->type, at->used);
    memset(wire + at->used * size, 0, (at->count - at->used) * size);
}

void casts_take_grads(const zero_memory *memory, int bucket, const void *reduced, bool add)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    void *kept = at->is_shared ? zero_bucket(memory, &memory->grads, bucket)
                               : zero_owned(memory, &memory->grads, bucket);
    if (reduced == kept)
        return;
    (add ? add_elements : cast_elements)(kept, memory->grads.type, reduced, memory->wire->type,
                                         at->is_shared ? at->count
                                                       : zero_owned_count(memory, bucket));
}

const float *casts_float_grads(const zero_memory *memory, int bucket, const void *kept,
                               size_t count)
{
    if (memory->grads.type == RING_FLOAT32)
        return kept;
    float *copy = zero_bucket(memory, memory->node_grads, bucket);
    elements_to_float(copy, kept, memory->grads.type, count);
    return copy;
}

/* Without masters the optimiser works on a copy in the live place. */
float *casts_begin_step(const zero_memory *memory, int bucket)
{
    float *params = zero_owned(memory, memory->masters, bucket);
    if (memory->masters == memory->node_params && memory->masters != &memory->params)
        elements_to_float(params, zero_owned(memory, &memory->params, bucket), memory->params.type,
                          zero_owned_count(memory, bucket));
    return params;
}

void casts_end_step(const zero_memory *memory, int bucket, size_t begin, size_t count)
{
    if (memory->masters == &memory->params)
        return;
    const ring_dtype type = memory->params.type;
    const float *updated = zero_owned(memory, memory->masters, bucket);
    elements_from_float(element_of(zero_owned(memory, &memory->params, bucket), type, begin), type,
                        updated + begin, count);
}
