/* SPDX-License-Identifier: Apache-2.0
 * Chooses type and layout of each array for a stage of ZeRO, allocates the arrays, and points the
 * model's tensors into them. */
#include "zero_memory.h"

#include <stdlib.h>
#include <string.h>

#include "element_casts.h"
#include "errors.h"

/* ---- Addresses ----------------------------------------------------------------------------- */

/* @return bytes that the role's own array takes in memory. */
static size_t bytes_of(const zero_memory *memory, zero_role role)
{
    const zero_array *array = &memory->arrays[role];
    if (!zero_has_own(memory, role) || array->outside)
        return 0;
    return memory->partition->elements[array->layout] * precision_size(array->type);
}

static void *element_at(const zero_array *array, size_t element)
{
    return array->data + element * precision_size(array->type);
}

bool zero_has_part(const zero_memory *memory, const zero_array *array, int bucket)
{
    return array->layout == LAYOUT_OWN ||
           (array->layout == LAYOUT_KEPT && !memory->partition->buckets[bucket].is_persistent);
}

const zero_array *zero_gathered(const zero_memory *memory, int bucket)
{
    const bool is_kept = memory->partition->buckets[bucket].is_persistent;
    return zero_array_of(memory, is_kept ? ZERO_PARAMS : ZERO_GATHERED);
}

const zero_array *zero_node_params(const zero_memory *memory, int bucket)
{
    return zero_is_same(memory, ZERO_NODE_PARAMS, ZERO_GATHERED)
               ? zero_gathered(memory, bucket)
               : zero_array_of(memory, ZERO_NODE_PARAMS);
}

void *zero_bucket(const zero_memory *memory, const zero_array *array, int bucket)
{
    return element_at(array, memory->partition->buckets[bucket].at[array->layout]);
}

void *zero_part(const zero_memory *memory, const zero_array *array, int bucket)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    const size_t before = zero_has_part(memory, array, bucket) ? 0
                                                               : (size_t)memory->rank * at->part;
    return element_at(array, at->at[array->layout] + before);
}

void *zero_owned(const zero_memory *memory, const zero_array *array, int bucket)
{
    return memory->zero_stage == 0 ? zero_bucket(memory, array, bucket)
                                   : zero_part(memory, array, bucket);
}

size_t zero_owned_count(const zero_memory *memory, int bucket)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    return memory->zero_stage == 0 ? at->count : at->part;
}

/* ---- Planning ------------------------------------------------------------------------------ */

static void give_own(zero_memory *memory, zero_role role, ring_dtype type, array_layout layout)
{
    memory->arrays[role] = (zero_array){.type = type, .layout = layout};
    memory->served_by[role] = role;
}

static void serve(zero_memory *memory, zero_role role, zero_role by)
{
    memory->served_by[role] = memory->served_by[by];
}

static void plan_params(zero_memory *memory, const precision_config *precision)
{
    const ring_dtype type = precision->params;
    const bool splits = memory->zero_stage >= 3, is_float = type == RING_FLOAT32;
    give_own(memory, ZERO_PARAMS, type, splits ? LAYOUT_KEPT : LAYOUT_FULL);
    if (splits)
        give_own(memory, ZERO_GATHERED, type, LAYOUT_GATHERED);
    else
        serve(memory, ZERO_GATHERED, ZERO_PARAMS);
    if (is_float)
        serve(memory, ZERO_NODE_PARAMS, ZERO_GATHERED);
    else
        give_own(memory, ZERO_NODE_PARAMS, RING_FLOAT32, LAYOUT_LIVE);
    if (!is_float && precision->masters)
        give_own(memory, ZERO_MASTERS, RING_FLOAT32,
                 memory->zero_stage > 0 ? LAYOUT_OWN : LAYOUT_FULL);
    else
        serve(memory, ZERO_MASTERS, is_float ? ZERO_PARAMS : ZERO_NODE_PARAMS);
}

static void plan_grads(zero_memory *memory, const precision_config *precision)
{
    const bool splits = memory->zero_stage >= 2;
    give_own(memory, ZERO_GRADS, precision->grads, splits ? LAYOUT_OWN : LAYOUT_FULL);
    if (splits || precision->grads != RING_FLOAT32)
        give_own(memory, ZERO_NODE_GRADS, RING_FLOAT32, LAYOUT_LIVE);
    else
        serve(memory, ZERO_NODE_GRADS, ZERO_GRADS);
    const zero_role sent = splits ? ZERO_NODE_GRADS : ZERO_GRADS;
    if (zero_array_of(memory, sent)->type == precision->wire)
        serve(memory, ZERO_WIRE, sent);
    else
        give_own(memory, ZERO_WIRE, precision->wire, splits ? LAYOUT_LIVE : LAYOUT_FULL);
}

void zero_memory_plan(zero_memory *memory, const train_partition *partition,
                      const precision_config *precision, int zero_stage, int rank)
{
    *memory = (zero_memory){.partition = partition, .zero_stage = zero_stage, .rank = rank};
    plan_params(memory, precision);
    plan_grads(memory, precision);
}

/* ---- Placing ------------------------------------------------------------------------------- */

/* Points those tensors of a node that are in @p bucket to their parameters and gradients. */
static void place_node(const zero_memory *memory, train_model *model, int number, int bucket)
{
    const model_node *node = &model->nodes[number];
    const size_t offset = memory->partition->buckets[bucket].at[LAYOUT_FULL],
                 end = offset + memory->partition->buckets[bucket].used;
    float *params = zero_bucket(memory, zero_node_params(memory, bucket), bucket);
    float *grads = zero_bucket(memory, zero_array_of(memory, ZERO_NODE_GRADS), bucket);
    for (int t = 0; t < node->use.tensor_count; t++) {
        train_tensor *tensor = &model->tensors.list[node->tensors[t]];
        tensor->type = memory->arrays[ZERO_PARAMS].type;
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
    const nn_place *place = memory->place = model->place;
    for (zero_role role = 0; role < ZERO_ROLES; role++) {
        const size_t bytes = bytes_of(memory, role);
        void **data = (void **)&memory->arrays[role].data;
        if (bytes > 0 && place->is_host)
            RING_TRY(train_ring(NULL, ring_mem_alloc(data, bytes)));
        else if (bytes > 0)
            RING_TRY(place->alloc(place, data, bytes, "parameters and gradients"));
    }
    place_all(memory, model);
    return RING_OK;
}

void zero_memory_free(zero_memory *memory)
{
    const nn_place *place = memory->place;
    for (zero_role role = 0; role < ZERO_ROLES && place != NULL; role++) {
        if (!memory->arrays[role].outside && place->is_host)
            ring_mem_free(memory->arrays[role].data);
        else if (!memory->arrays[role].outside)
            place->release(place, memory->arrays[role].data);
    }
    *memory = (zero_memory){0};
}

/* ---- Initial parameters -------------------------------------------------------------------- */

/* Copies those parameters of a bucket that this rank keeps. @param all  all parameters in float32.
 */
static void keep_first(const zero_memory *memory, const float *all, int bucket)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    const zero_array full = {.type = RING_FLOAT32, .data = (unsigned char *)(uintptr_t)all};
    const zero_array *params = &memory->arrays[ZERO_PARAMS];
    if (!memory->place->is_host) { /* float32, without ZeRO */
        memory->place->write(memory->place, zero_bucket(memory, params, bucket),
                             all + at->at[LAYOUT_FULL], at->count * sizeof(float));
        return;
    }
    if (zero_has_part(memory, params, bucket))
        cast_elements(zero_part(memory, params, bucket), params->type,
                      zero_part(memory, &full, bucket), RING_FLOAT32, at->part);
    else
        cast_elements(zero_bucket(memory, params, bucket), params->type, all + at->at[LAYOUT_FULL],
                      RING_FLOAT32, at->count);
    if (zero_has_own(memory, ZERO_MASTERS))
        memcpy(zero_owned(memory, &memory->arrays[ZERO_MASTERS], bucket),
               zero_owned(memory, &full, bucket), zero_owned_count(memory, bucket) * sizeof(float));
}

void zero_memory_fill(zero_memory *memory, const float *all)
{
    for (int b = 0; b < memory->partition->count; b++)
        keep_first(memory, all, b);
    (void)memory->place->settle(memory->place); /* the next settle() returns a failure */
}

ring_status zero_memory_open(const zero_memory *memory, train_model *model, float **all)
{
    *all = NULL;
    if (memory->place->is_host && zero_is_same(memory, ZERO_NODE_PARAMS, ZERO_PARAMS))
        return RING_OK;
    RING_TRY(train_alloc((void **)all, memory->partition->elements[LAYOUT_FULL] * sizeof(float),
                         "initial parameters"));
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
    return bytes_of(memory, ZERO_PARAMS);
}

size_t zero_grad_bytes(const zero_memory *memory)
{
    return bytes_of(memory, ZERO_GRADS);
}

size_t zero_master_bytes(const zero_memory *memory)
{
    return bytes_of(memory, ZERO_MASTERS);
}

size_t zero_kept_bytes(const zero_memory *memory)
{
    return zero_param_bytes(memory) + zero_grad_bytes(memory) + zero_master_bytes(memory);
}

size_t zero_live_bytes(const zero_memory *memory)
{
    return bytes_of(memory, ZERO_GATHERED) + bytes_of(memory, ZERO_NODE_PARAMS) +
           bytes_of(memory, ZERO_NODE_GRADS) + bytes_of(memory, ZERO_WIRE);
}
