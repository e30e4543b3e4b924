/* SPDX-License-Identifier: Apache-2.0
 * What each stage keeps, and where. */
#include "zero_memory.h"

#include <stdlib.h>
#include <string.h>

#include "errors.h"

static bool splits_grads(const zero_memory *memory)
{
    return memory->stage >= 2;
}

static bool splits_params(const zero_memory *memory)
{
    return memory->stage >= 3;
}

static size_t kept(const zero_memory *memory, bool split)
{
    return split ? memory->partition->own : memory->partition->elements;
}

static size_t part_at(const zero_memory *memory, const partition_bucket *bucket)
{
    return bucket->offset + (size_t)memory->rank * bucket->part;
}

float *zero_params(const zero_memory *memory, int bucket)
{
    if (splits_params(memory))
        return memory->live_params[bucket % LIVE_BUCKETS];
    return memory->params + memory->partition->buckets[bucket].offset;
}

float *zero_grads(const zero_memory *memory, int bucket)
{
    if (splits_grads(memory))
        return memory->live_grads[bucket % LIVE_BUCKETS];
    return memory->grads + memory->partition->buckets[bucket].offset;
}

float *zero_own_params(const zero_memory *memory, int bucket)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    return memory->params + (splits_params(memory) ? at->own : part_at(memory, at));
}

float *zero_own_grads(const zero_memory *memory, int bucket)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    return memory->grads + (splits_grads(memory) ? at->own : part_at(memory, at));
}

/* ---- Allocating and placing ---------------------------------------------------------------- */

static ring_status allocate(float **memory, size_t count)
{
    return train_ring(NULL, ring_mem_alloc((void **)memory, count * sizeof(float)));
}

static ring_status allocate_all(zero_memory *memory)
{
    const size_t largest = memory->partition->largest;
    RING_TRY(allocate(&memory->params, kept(memory, splits_params(memory))));
    RING_TRY(allocate(&memory->grads, kept(memory, splits_grads(memory))));
    for (int i = 0; i < LIVE_BUCKETS; i++) {
        if (splits_params(memory))
            RING_TRY(allocate(&memory->live_params[i], largest));
        if (splits_grads(memory))
            RING_TRY(allocate(&memory->live_grads[i], largest));
    }
    return RING_OK;
}

static void place_node(const zero_memory *memory, train_model *model, int number, int bucket)
{
    const model_node *node = &model->nodes[number];
    const size_t offset = memory->partition->buckets[bucket].offset;
    for (int t = 0; t < node->use.tensor_count; t++) {
        const train_tensor *tensor = &model->tensors.list[node->tensors[t]];
        if (tensor->tie >= 0)
            model_place(model, node->tensors[t], model->params[tensor->tie],
                        model->grads[tensor->tie]);
        else
            model_place(model, node->tensors[t],
                        zero_params(memory, bucket) + (tensor->offset - offset),
                        zero_grads(memory, bucket) + (tensor->offset - offset));
    }
}

static void place_all(const zero_memory *memory, train_model *model)
{
    const train_partition *partition = memory->partition;
    for (int b = 0; b < partition->count; b++) {
        for (int n = partition->buckets[b].first; n < partition->buckets[b].end; n++)
            place_node(memory, model, n, b);
    }
}

ring_status zero_memory_create(zero_memory *memory, train_model *model,
                               const train_partition *partition, int stage, int rank)
{
    *memory = (zero_memory){.partition = partition, .stage = stage, .rank = rank};
    if (stage >= 2 && model->tensors.own_count < model->tensors.count)
        return train_fail(RING_ERR_CONFIG,
                          "zero_optimization.stage %d does not go with layers that share "
                          "parameters; use stage 1",
                          stage);
    RING_TRY(allocate_all(memory));
    place_all(memory, model);
    return RING_OK;
}

void zero_memory_free(zero_memory *memory)
{
    ring_mem_free(memory->params);
    ring_mem_free(memory->grads);
    for (int i = 0; i < LIVE_BUCKETS; i++) {
        ring_mem_free(memory->live_params[i]);
        ring_mem_free(memory->live_grads[i]);
    }
    *memory = (zero_memory){0};
}

/* Every rank draws all parameters; from stage 3 on it keeps its own. */
ring_status zero_memory_init(zero_memory *memory, train_model *model, uint64_t seed)
{
    const train_partition *partition = memory->partition;
    float *all;
    if (!splits_params(memory)) {
        model_init(model, seed);
        return RING_OK;
    }
    RING_TRY(train_alloc((void **)&all, partition->elements * sizeof(float), "first parameters"));
    model_bind(model, all, all);
    model_init(model, seed);
    for (int b = 0; b < partition->count; b++)
        memcpy(zero_own_params(memory, b), all + part_at(memory, &partition->buckets[b]),
               partition->buckets[b].part * sizeof(float));
    free(all);
    place_all(memory, model);
    return RING_OK;
}

size_t zero_kept_bytes(const zero_memory *memory)
{
    return (kept(memory, splits_params(memory)) + kept(memory, splits_grads(memory))) *
           sizeof(float);
}

size_t zero_live_bytes(const zero_memory *memory)
{
    const size_t kinds = (size_t)splits_params(memory) + (size_t)splits_grads(memory);
    return kinds * LIVE_BUCKETS * memory->partition->largest * sizeof(float);
}
