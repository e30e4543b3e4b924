/* SPDX-License-Identifier: Apache-2.0
 * Chooses source and destination of each cast by the roles of the arrays and the stage of ZeRO. */
#include "bucket_casts.h"

#include <string.h>

#include "element_casts.h"

void casts_load_params(const zero_memory *memory, int bucket)
{
    if (zero_is_same(memory, ZERO_NODE_PARAMS, ZERO_GATHERED))
        return;
    const zero_array *from = zero_gathered(memory, bucket),
                     *to = zero_array_of(memory, ZERO_NODE_PARAMS);
    cast_elements(zero_bucket(memory, to, bucket), to->type, zero_bucket(memory, from, bucket),
                  from->type, memory->partition->buckets[bucket].count);
}

void casts_keep_grads(const zero_memory *memory, int bucket, bool add)
{
    const zero_array *from = zero_array_of(memory, ZERO_NODE_GRADS),
                     *to = &memory->arrays[ZERO_GRADS];
    const size_t used = memory->partition->buckets[bucket].used;
    if (zero_is_same(memory, ZERO_NODE_GRADS, ZERO_GRADS) || memory->zero_stage >= 2)
        return;
    (add ? add_elements : cast_elements)(zero_bucket(memory, to, bucket), to->type,
                                         zero_bucket(memory, from, bucket), from->type, used);
}

/* Stages 2 and 3 send the gradients that nodes wrote, rounded to the type in which they will be
 * stored, so that all stages of ZeRO compute the same bits. */
void casts_send_grads(const zero_memory *memory, int bucket)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    const zero_role sent = memory->zero_stage >= 2 ? ZERO_NODE_GRADS : ZERO_GRADS;
    const zero_array *from = zero_array_of(memory, sent), *to = zero_array_of(memory, ZERO_WIRE);
    const ring_dtype kept = memory->arrays[ZERO_GRADS].type;
    unsigned char *wire = zero_bucket(memory, to, bucket);
    const size_t size = precision_size(to->type);
    if (sent == ZERO_NODE_GRADS && kept != RING_FLOAT32 && kept != to->type)
        round_elements(zero_bucket(memory, from, bucket), kept, at->used);
    if (!zero_is_same(memory, ZERO_WIRE, sent))
        cast_elements(wire, to->type, zero_bucket(memory, from, bucket), from->type, at->used);
    memset(wire + at->used * size, 0, (at->count - at->used) * size);
}

void casts_take_grads(const zero_memory *memory, int bucket, const void *reduced, bool add)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    const zero_array *grads = &memory->arrays[ZERO_GRADS];
    void *kept = at->is_shared ? zero_bucket(memory, grads, bucket)
                               : zero_owned(memory, grads, bucket);
    if (reduced == kept)
        return;
    const size_t count = at->is_shared ? at->count : zero_owned_count(memory, bucket);
    (add ? add_elements : cast_elements)(kept, grads->type, reduced,
                                         zero_array_of(memory, ZERO_WIRE)->type, count);
}

const float *casts_float_grads(const zero_memory *memory, int bucket, const void *kept,
                               size_t count)
{
    const ring_dtype type = memory->arrays[ZERO_GRADS].type;
    if (type == RING_FLOAT32)
        return kept;
    float *copy = zero_bucket(memory, zero_array_of(memory, ZERO_NODE_GRADS), bucket);
    elements_to_float(copy, kept, type, count);
    return copy;
}

/* For 16-bit parameters without masters, the optimiser works on a float32 copy in the bucket's live
 * place. */
float *casts_begin_step(const zero_memory *memory, int bucket)
{
    const zero_array *kept = &memory->arrays[ZERO_PARAMS];
    float *params = zero_owned(memory, zero_array_of(memory, ZERO_MASTERS), bucket);
    if (!zero_has_own(memory, ZERO_MASTERS) && !zero_is_same(memory, ZERO_MASTERS, ZERO_PARAMS))
        elements_to_float(params, zero_owned(memory, kept, bucket), kept->type,
                          zero_owned_count(memory, bucket));
    return params;
}

void casts_end_step(const zero_memory *memory, int bucket, size_t begin, size_t count)
{
    if (zero_is_same(memory, ZERO_MASTERS, ZERO_PARAMS))
        return;
    const zero_array *kept = &memory->arrays[ZERO_PARAMS];
    const float *updated = zero_owned(memory, zero_array_of(memory, ZERO_MASTERS), bucket);
    elements_from_float(element_of(zero_owned(memory, kept, bucket), kept->type, begin), kept->type,
                        updated + begin, count);
}
