/* SPDX-License-Identifier: Apache-2.0
 * What each stage keeps, in which types, and where. */
#include "zero_memory.h"

#include <stdlib.h>
#include <string.h>

#include "element_casts.h"
#include "errors.h"

/* ---- Where things lie ---------------------------------------------------------------------- */

static size_t elements_of(const zero_memory *memory, const zero_array *array)
{
    const train_partition *partition = memory->partition;
    const size_t counts[] = {[LAYOUT_WHOLE] = partition->elements,
                             [LAYOUT_OWN] = partition->own,
                             [LAYOUT_KEPT] = partition->kept,
                             [LAYOUT_LIVE] = partition->live,
                             [LAYOUT_GATHERED] = partition->gathered};
    return counts[array->layout];
}

static size_t bytes_of(const zero_memory *memory, const zero_array *array)
{
    return array->used && !array->outside ? elements_of(memory, array) * precision_size(array->type)
                                          : 0;
}

static void *element_at(const zero_array *array, size_t element)
{
    return array->data + element * precision_size(array->type);
}

/* @return elements before the bucket. */
static size_t bucket_at(const zero_memory *memory, const zero_array *array, int bucket)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    const size_t before[] = {[LAYOUT_WHOLE] = at->offset,
                             [LAYOUT_OWN] = at->own,
                             [LAYOUT_KEPT] = at->kept_at,
                             [LAYOUT_LIVE] = at->live_at,
                             [LAYOUT_GATHERED] = at->gathered_at};
    return before[array->layout];
}

bool zero_has_part(const zero_memory *memory, const zero_array *array, int bucket)
{
    return array->layout == LAYOUT_OWN ||
           (array->layout == LAYOUT_KEPT && !memory->partition->buckets[bucket].is_whole);
}

const zero_array *zero_gathered(const zero_memory *memory, int bucket)
{
    return memory->partition->buckets[bucket].is_whole ? &memory->params : memory->gathered;
}

const zero_array *zero_node_params(const zero_memory *memory, int bucket)
{
    return memory->node_params == memory->gathered ? zero_gathered(memory, bucket)
                                                   : memory->node_params;
}

void *zero_bucket(const zero_memory *memory, const zero_array *array, int bucket)
{
    return element_at(array, bucket_at(memory, array, bucket));
}

void *zero_part(const zero_memory *memory, const zero_array *array, int bucket)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    const size_t before = zero_has_part(memory, array, bucket) ? 0
                                                               : (size_t)memory->rank * at->part;
    return element_at(array, bucket_at(memory, array, bucket) + before);
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

static void plan_params(zero_memory *memory, const precision_config *precision)
{
    const ring_dtype type = precision->params;
    const bool splits = memory->stage >= 3;
    use(&memory->params, type, splits ? LAYOUT_KEPT : LAYOUT_WHOLE);
    memory->gathered = memory->node_params = memory->masters = &memory->params;
    if (splits) {
        use(&memory->live_gathered, type, LAYOUT_GATHERED);
        memory->gathered = memory->node_params = &memory->live_gathered;
    }
    if (type == RING_FLOAT32)
        return;
    use(&memory->live_params, RING_FLOAT32, LAYOUT_LIVE);
    memory->node_params = memory->masters = &memory->live_params;
    if (!precision->masters)
        return;
    memory->masters = &memory->own_masters;
    use(&memory->own_masters, RING_FLOAT32, memory->stage > 0 ? LAYOUT_OWN : LAYOUT_WHOLE);
}

static void plan_grads(zero_memory *memory, const precision_config *precision)
{
    const bool splits = memory->stage >= 2;
    use(&memory->grads, precision->grads, splits ? LAYOUT_OWN : LAYOUT_WHOLE);
    memory->node_grads = memory->wire = &memory->grads;
    if (splits || precision->grads != RING_FLOAT32) {
        use(&memory->live_grads, RING_FLOAT32, LAYOUT_LIVE);
        memory->node_grads = &memory->live_grads;
    }
    if (splits)
        memory->wire = &memory->live_grads;
    if (memory->wire->type == precision->wire)
        return;
    memory->wire = &memory->live_wire;
    use(&memory->live_wire, precision->wire, splits ? LAYOUT_LIVE : LAYOUT_WHOLE);
}

void zero_memory_plan(zero_memory *memory, const train_partition *partition,
                      const precision_config *precision, int stage, int rank)
{
    *memory = (zero_memory){.partition = partition, .stage = stage, .rank = rank};
    plan_params(memory, precision);
    plan_grads(memory, precision);
}

static ring_status allocate(zero_memory *memory)
{
    zero_array *const arrays[] = {
        &memory->params,      &memory->grads,      &memory->own_masters, &memory->live_gathered,
        &memory->live_params, &memory->live_grads, &memory->live_wire,
    };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        if (bytes_of(memory, arrays[i]) > 0)
            RING_TRY(train_ring(NULL, ring_mem_alloc((void **)&arrays[i]->data,
                                                     bytes_of(memory, arrays[i]))));
    }
    return RING_OK;
}

/* ---- Placing ------------------------------------------------------------------------------- */

static void place_node(const zero_memory *memory, train_model *model, int number, int bucket)
{
    const model_node *node = &model->nodes[number];
    const size_t offset = memory->partition->buckets[bucket].offset,
                 end = offset + memory->partition->buckets[bucket].used;
    float *params = zero_bucket(memory, zero_node_params(memory, bucket), bucket);
    float *grads = zero_bucket(memory, memory->node_grads, bucket);
    for (int t = 0; t < node->use.tensor_count; t++) {
        train_tensor *tensor = &model->tensors.list[node->tensors[t]];
        tensor->type = memory->params.type;
        if (tensor->tie < 0 && tensor->offset >= offset && tensor->offset < end)
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
    for (int t = 0; t < model->tensors.count; t++) {
        const int tie = model->tensors.list[t].tie;
        if (tie >= 0)
            model_place(model, t, model->params[tie], model->grads[tie]);
    }
}

ring_status zero_memory_allocate(zero_memory *memory, train_model *model)
{
    RING_TRY(allocate(memory));
    place_all(memory, model);
    return RING_OK;
}

static void free_array(zero_array *array)
{
    if (!array->outside)
        ring_mem_free(array->data);
}

void zero_memory_free(zero_memory *memory)
{
    free_array(&memory->params);
    ring_mem_free(memory->grads.data);
    free_array(&memory->own_masters);
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
    if (zero_has_part(memory, params, bucket))
        cast_elements(zero_part(memory, params, bucket), params->type,
                      zero_part(memory, &whole, bucket), RING_FLOAT32, at->part);
    else
        cast_elements(zero_bucket(memory, params, bucket), params->type, all + at->offset,
                      RING_FLOAT32, at->count);
    if (memory->masters == &memory->own_masters)
        memcpy(zero_owned(memory, memory->masters, bucket), zero_owned(memory, &whole, bucket),
               zero_owned_count(memory, bucket) * sizeof(float));
}

void zero_memory_fill(zero_memory *memory, const float *all)
{
    for (int b = 0; b < memory->partition->count; b++)
        keep_first(memory, all, b);
}

/* Every rank draws all parameters, and keeps what is its own. */
ring_status zero_memory_open(const zero_memory *memory, train_model *model, float **all)
{
    *all = NULL;
    if (memory->node_params == &memory->params)
        return RING_OK;
    RING_TRY(
        train_alloc((void **)all, memory->partition->elements * sizeof(float), "first parameters"));
    model_bind(model, *all, *all);
    return RING_OK;
}

void zero_memory_keep(zero_memory *memory, train_model *model, float *all)
{
    if (all == NULL)
        return;
    zero_memory_fill(memory, all);
    free(all);
    place_all(memory, model);
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
