/* SPDX-License-Identifier: Apache-2.0
 * What each stage keeps, in which types, and where. */
#include "zero_memory.h"

#include <stdlib.h>
#include <string.h>

#include "bucket_casts.h"
#include "errors.h"

/* ---- Where things lie ---------------------------------------------------------------------- */

static size_t elements_of(const zero_memory *memory, const zero_array *array)
{
    const train_partition *partition = memory->partition;
    const size_t counts[] = {[LAYOUT_WHOLE] = partition->elements,
                             [LAYOUT_OWN] = partition->own,
                             [LAYOUT_LIVE] = LIVE_BUCKETS * partition->largest};
    return counts[array->layout];
}

static size_t bytes_of(const zero_memory *memory, const zero_array *array)
{
    return array->used ? elements_of(memory, array) * precision_size(array->type) : 0;
}

static void *element_at(const zero_array *array, size_t element)
{
    return array->data + element * precision_size(array->type);
}

/* @return elements before the bucket. */
static size_t bucket_at(const zero_memory *memory, const zero_array *array, int bucket)
{
    return array->layout == LAYOUT_LIVE
               ? (size_t)(bucket % LIVE_BUCKETS) * memory->partition->largest
               : memory->partition->buckets[bucket].offset;
}

void *zero_bucket(const zero_memory *memory, const zero_array *array, int bucket)
{
    return element_at(array, bucket_at(memory, array, bucket));
}

void *zero_part(const zero_memory *memory, const zero_array *array, int bucket)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    if (array->layout == LAYOUT_OWN)
        return element_at(array, at->own);
    return element_at(array, bucket_at(memory, array, bucket) + (size_t)memory->rank * at->part);
}

void *zero_owned(const zero_memory *memory, const zero_array *array, int bucket)
{
    return memory->stage == 0 ? zero_bucket(memory, array, bucket)
                              : zero_part(memory, array, bucket);
}

size_t zero_owned_count(const zero_memory *memory, int bucket)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    return memory->stage == 0 ? at->count : at->part;
}

/* ---- Planning ------------------------------------------------------------------------------ */

static void use(zero_array *array, ring_dtype type, array_layout layout)
{
    *array = (zero_array){.type = type, .layout = layout, .used = true};
}

static void plan_params(zero_memory *memory, const precision_config *precision, array_layout live)
{
    const ring_dtype type = precision->params;
    const bool splits = memory->stage >= 3;
    use(&memory->params, type, splits ? LAYOUT_OWN : LAYOUT_WHOLE);
    memory->gathered = memory->node_params = memory->masters = &memory->params;
    if (splits) {
        use(&memory->live_gathered, type, LAYOUT_LIVE);
        memory->gathered = memory->node_params = &memory->live_gathered;
    }
    if (type == RING_FLOAT32)
        return;
    use(&memory->live_params, RING_FLOAT32, live);
    memory->node_params = memory->masters = &memory->live_params;
    if (!precision->masters)
        return;
    memory->masters = &memory->own_masters;
    use(&memory->own_masters, RING_FLOAT32, memory->stage > 0 ? LAYOUT_OWN : LAYOUT_WHOLE);
}

static void plan_grads(zero_memory *memory, const precision_config *precision, array_layout live)
{
    const bool splits = memory->stage >= 2;
    use(&memory->grads, precision->grads, splits ? LAYOUT_OWN : LAYOUT_WHOLE);
    memory->node_grads = memory->wire = &memory->grads;
    if (splits || precision->grads != RING_FLOAT32) {
        use(&memory->live_grads, RING_FLOAT32, live);
        memory->node_grads = &memory->live_grads;
    }
    if (splits)
        memory->wire = &memory->live_grads;
    if (memory->wire->type == precision->wire)
        return;
    memory->wire = &memory->live_wire;
    use(&memory->live_wire, precision->wire, splits ? LAYOUT_LIVE : LAYOUT_WHOLE);
}

static bool has_ties(const train_model *model)
{
    return model->tensors.own_count < model->tensors.count;
}

/* Live buckets of a network with tied tensors all have a place of their own: one is worked on with
 * tensors of another. */
void zero_memory_plan(zero_memory *memory, const train_model *model,
                      const train_partition *partition, const precision_config *precision,
                      int stage, int rank)
{
    const array_layout live = has_ties(model) ? LAYOUT_WHOLE : LAYOUT_LIVE;
    *memory = (zero_memory){.partition = partition, .stage = stage, .rank = rank};
    plan_params(memory, precision, live);
    plan_grads(memory, precision, live);
}

static ring_status allocate(zero_memory *memory)
{
    zero_array *const arrays[] = {
        &memory->params,      &memory->grads,      &memory->own_masters, &memory->live_gathered,
        &memory->live_params, &memory->live_grads, &memory->live_wire,
    };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        if (arrays[i]->used)
            RING_TRY(train_ring(NULL, ring_mem_alloc((void **)&arrays[i]->data,
                                                     bytes_of(memory, arrays[i]))));
    }
    return RING_OK;
}

/* ---- Placing ------------------------------------------------------------------------------- */

static void place_node(const zero_memory *memory, train_model *model, int number, int bucket)
{
    const model_node *node = &model->nodes[number];
    const size_t offset = memory->partition->buckets[bucket].offset;
    float *params = zero_bucket(memory, memory->node_params, bucket);
    float *grads = zero_bucket(memory, memory->node_grads, bucket);
    for (int t = 0; t < node->use.tensor_count; t++) {
        train_tensor *tensor = &model->tensors.list[node->tensors[t]];
        tensor->type = memory->params.type;
        if (tensor->tie >= 0)
            model_place(model, node->tensors[t], model->params[tensor->tie],
                        model->grads[tensor->tie]);
        else
            model_place(model, node->tensors[t], params + (tensor->offset - offset),
                        grads + (tensor->offset - offset));
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

ring_status zero_memory_check(const train_model *model, int stage)
{
    if (stage >= 2 && has_ties(model))
        return train_fail(RING_ERR_CONFIG,
                          "zero_optimization.stage %d does not go with layers that share "
                          "parameters; use stage 1",
                          stage);
    return RING_OK;
}

ring_status zero_memory_create(zero_memory *memory, train_model *model,
                               const train_partition *partition, const precision_config *precision,
                               int stage, int rank)
{
    *memory = (zero_memory){0};
    RING_TRY(zero_memory_check(model, stage));
    zero_memory_plan(memory, model, partition, precision, stage, rank);
    RING_TRY(allocate(memory));
    place_all(memory, model);
    return RING_OK;
}

void zero_memory_free(zero_memory *memory)
{
    ring_mem_free(memory->params.data);
    ring_mem_free(memory->grads.data);
    ring_mem_free(memory->own_masters.data);
    ring_mem_free(memory->live_gathered.data);
    ring_mem_free(memory->live_params.data);
    ring_mem_free(memory->live_grads.data);
    ring_mem_free(memory->live_wire.data);
    *memory = (zero_memory){0};
}

/* ---- The first parameters ------------------------------------------------------------------ */

/* Of all parameters in float32, what this rank keeps. */
static void keep_first(const zero_memory *memory, const float *all, int bucket)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    const zero_array whole = {.type = RING_FLOAT32, .data = (unsigned char *)(uintptr_t)all};
    const zero_array *params = &memory->params;
    if (params->layout == LAYOUT_OWN)
        cast_elements(zero_part(memory, params, bucket), params->type,
                      zero_part(memory, &whole, bucket), RING_FLOAT32, at->part);
    else
        cast_elements(zero_bucket(memory, params, bucket), params->type, all + at->offset,
                      RING_FLOAT32, at->count);
    if (memory->masters == &memory->own_masters)
        memcpy(zero_owned(memory, memory->masters, bucket), zero_owned(memory, &whole, bucket),
               zero_owned_count(memory, bucket) * sizeof(float));
}

/* Every rank draws all parameters, and keeps what is its own. */
ring_status zero_memory_init(zero_memory *memory, train_model *model, uint64_t seed)
{
    const train_partition *partition = memory->partition;
    float *all;
    if (memory->node_params == &memory->params) {
        model_init(model, seed);
        return RING_OK;
    }
    RING_TRY(train_alloc((void **)&all, partition->elements * sizeof(float), "first parameters"));
    model_bind(model, all, all);
    model_init(model, seed);
    for (int b = 0; b < partition->count; b++)
        keep_first(memory, all, b);
    free(all);
    place_all(memory, model);
    return RING_OK;
}

/* ---- Bytes --------------------------------------------------------------------------------- */

size_t zero_param_bytes(const zero_memory *memory)
{
    return bytes_of(memory, &memory->params);
}

size_t zero_grad_bytes(const zero_memory *memory)
{
    return bytes_of(memory, &memory->grads);
}

size_t zero_master_bytes(const zero_memory *memory)
{
    return bytes_of(memory, &memory->own_masters);
}

size_t zero_kept_bytes(const zero_memory *memory)
{
    return zero_param_bytes(memory) + zero_grad_bytes(memory) + zero_master_bytes(memory);
}

size_t zero_live_bytes(const zero_memory *memory)
{
    return bytes_of(memory, &memory->live_gathered) + bytes_of(memory, &memory->live_params) +
           bytes_of(memory, &memory->live_grads) + bytes_of(memory, &memory->live_wire);
}
