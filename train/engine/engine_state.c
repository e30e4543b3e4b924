/* SPDX-License-Identifier: Apache-2.0
 * Lists an engine's state by walking over its flat buffers and cutting them where tensors begin and
 * end. */
#include "engine_state.h"

#include <stdlib.h>
#include <string.h>

#include "element_casts.h"
#include "errors.h"

/* One state of all parameters, in an array that the partition lays out. */
typedef struct state_array {
    const char *state;
    zero_array array; /* its data are NULL if the engine has no such state */
} state_array;

enum { ARRAYS = 4 };

/* ---- Contents ------------------------------------------------------------------------------ */

static state_array from_memory(const zero_array *array)
{
    return (state_array){STATE_PARAM, *array};
}

static state_array from_optimizer(const train_engine *engine, int state, float *values)
{
    return (state_array){optimizer_state_name(&engine->optimizer.config, state),
                         {.type = RING_FLOAT32,
                          .layout = engine->zero_stage > 0 ? LAYOUT_OWN : LAYOUT_FULL,
                          .data = (unsigned char *)values}};
}

/* With masters, the masters are the parameters' state. Nodes only read the 16-bit parameters, which
 * are a copy, so they are listed only to be set. */
static void list_arrays(const train_engine *engine, state_share share, state_array arrays[ARRAYS])
{
    const train_optimizer *optimizer = &engine->optimizer;
    const zero_memory *memory = &engine->memory;
    const zero_array *params = &memory->arrays[ZERO_PARAMS];
    const bool masters = zero_has_own(memory, ZERO_MASTERS);
    arrays[0] = from_memory(masters ? &memory->arrays[ZERO_MASTERS] : params);
    arrays[1] = masters && share == SHARE_HELD ? from_memory(params) : (state_array){0};
    arrays[2] = from_optimizer(engine, 0, optimizer->first);
    arrays[3] = from_optimizer(engine, 1, optimizer->second);
}

static void add_number(engine_state *state, state_number number)
{
    state->numbers[state->number_count++] = number;
}

/* The scaler's numbers are optional: a run that begins to scale its loss resumes from a checkpoint
 * without them, and then starts from the configured scale. */
static void list_numbers(train_engine *engine, engine_state *state)
{
    loss_scaler *scaler = &engine->overflow.scaler;
    add_number(state, (state_number){"optimizer.step", .whole = &engine->optimizer.step});
    add_number(state,
               (state_number){"skipped", .whole = &engine->overflow.skipped, .optional = true});
    if (!scaler->dynamic)
        return;
    add_number(state, (state_number){"scaler.scale", .real = &scaler->scale, .optional = true});
    add_number(state, (state_number){"scaler.left", .small = &scaler->left, .optional = true});
    add_number(state,
               (state_number){"scaler.iteration", .whole = &scaler->iteration, .optional = true});
    add_number(state, (state_number){"scaler.last_overflow", .whole = &scaler->last_overflow,
                                     .optional = true});
}

double state_number_get(const state_number *number)
{
    if (number->real != NULL)
        return *number->real;
    return number->whole != NULL ? (double)*number->whole : (double)*number->small;
}

void state_number_set(const state_number *number, double value)
{
    if (number->real != NULL)
        *number->real = value;
    else if (number->whole != NULL)
        *number->whole = (long)value;
    else
        *number->small = (int)value;
}

/* ---- Ranges -------------------------------------------------------------------------------- */

/* A range of elements of a flat buffer, or of a tensor. */
typedef struct flat_range {
    size_t begin, count;
    unsigned char *values; /* of element begin */
} flat_range;

/* @return the part of a bucket that is listed, by offsets in LAYOUT_FULL. */
static flat_range range_of(const train_engine *engine, const zero_array *array, int bucket,
                           state_share share)
{
    const zero_memory *memory = &engine->memory;
    const partition_bucket *at = &engine->partition.buckets[bucket];
    const size_t own = at->at[LAYOUT_FULL] + (size_t)engine->rank * at->part;
    if (share == SHARE_OWN || zero_has_part(memory, array, bucket))
        return (flat_range){own, at->part, zero_part(memory, array, bucket)};
    return (flat_range){at->at[LAYOUT_FULL], at->count, zero_bucket(memory, array, bucket)};
}

/* @return the intersection of @p range and the tensor, counted from the tensor's first element; its
 * count is 0 if they do not overlap. @param size  bytes of an element */
static flat_range range_in(const flat_range *range, const train_tensor *tensor, size_t size)
{
    const size_t tensor_end = tensor->offset + tensor->count,
                 range_end = range->begin + range->count;
    const size_t begin = tensor->offset > range->begin ? tensor->offset : range->begin;
    const size_t end = tensor_end < range_end ? tensor_end : range_end;
    if (begin >= end)
        return (flat_range){0};
    return (flat_range){begin - tensor->offset, end - begin,
                        range->values + (begin - range->begin) * size};
}

tensor_order engine_order(const train_engine *engine, int tensor)
{
    return engine->tensor.ranks > 1
               ? engine->tensor.orders[tensor]
               : tensor_order_whole(engine_network(engine)->tensors.list[tensor].count);
}

static void add_piece(const train_engine *engine, const state_array *array, int number,
                      const flat_range *in, engine_state *state)
{
    const tensor_order order = engine_order(engine, number);
    size_t part;
    const size_t before = tensor_order_part(&order, engine->tensor.rank, &part);
    const train_tensor *tensor = &engine_network(engine)->tensors.list[number];
    state->pieces[state->piece_count++] = (state_piece){.state = array->state,
                                                        .tensor = tensor,
                                                        .order = order,
                                                        .begin = before + in->begin,
                                                        .count = in->count,
                                                        .type = array->array.type,
                                                        .values = in->values};
}

/* Lists the array's elements bucket by bucket. In each bucket it intersects the range that this
 * rank has with each tensor. */
static void add_array(const train_engine *engine, const state_array *array, state_share share,
                      engine_state *state)
{
    const tensor_table *tensors = &engine_staged_network(engine)->tensors;
    for (int b = 0; b < engine->partition.count; b++) {
        const flat_range range = range_of(engine, &array->array, b, share);
        for (int t = 0; t < tensors->count; t++) {
            const int local = pipeline_local(&engine->pipeline, t);
            if (tensors->list[t].tie >= 0 || local < 0)
                continue;
            /* If several ranks have the same parameter, only one of them owns it. */
            const train_tensor *tensor = &engine->model.tensors.list[local];
            if (share == SHARE_OWN && tensor->counted_elsewhere)
                continue;
            const flat_range in = range_in(&range, tensor, precision_size(array->array.type));
            if (in.count == 0)
                continue;
            const int number = engine->tensor.ranks == 1
                                   ? t
                                   : tensor_parallel_number(&engine->tensor, tensors->list[t].name);
            add_piece(engine, array, number, &in, state);
        }
    }
}

ring_status engine_state_list(train_engine *engine, state_share share, engine_state *state)
{
    state_array arrays[ARRAYS];
    *state = (engine_state){.place = engine->model.place, .offload = &engine->offload};
    /* A tensor is in one bucket, so each array has at most one piece of it. */
    const size_t most = (size_t)ARRAYS * (size_t)engine->model.tensors.count;
    RING_TRY(train_alloc((void **)&state->pieces, most * sizeof *state->pieces,
                         "the list of the engine's state"));
    list_arrays(engine, share, arrays);
    for (int a = 0; a < ARRAYS; a++) {
        if (arrays[a].array.data != NULL)
            add_array(engine, &arrays[a], share, state);
    }
    list_numbers(engine, state);
    return RING_OK;
}

void engine_state_free(engine_state *state)
{
    free(state->pieces);
    *state = (engine_state){0};
}

size_t state_piece_element(const state_piece *piece, size_t done, size_t *count)
{
    size_t run;
    const size_t element = tensor_order_element(&piece->order, piece->begin + done, &run);
    *count = run < piece->count - done ? run : piece->count - done;
    return element;
}

static void set_piece(const nn_place *place, const state_piece *piece, const float *values)
{
    unsigned char *to = piece->values;
    size_t now;
    for (size_t done = 0; done < piece->count; done += now) {
        const size_t element = state_piece_element(piece, done, &now);
        if (!place->is_host) /* float32 */
            place->write(place, (float *)(void *)to + done, values + element, now * sizeof(float));
        else
            cast_elements(to + done * precision_size(piece->type), piece->type, values + element,
                          RING_FLOAT32, now);
    }
}

ring_status state_piece_fetch(const engine_state *state, const state_piece *piece)
{
    offload_fetch(state->offload, piece->values, piece->count * precision_size(piece->type), true);
    return train_failure_tell(&state->offload->failure);
}

ring_status engine_set_param(train_engine *engine, const train_tensor *tensor, const float *values)
{
    engine_state held;
    ring_status status = engine_state_list(engine, SHARE_HELD, &held);
    for (int i = 0; i < held.piece_count && status == RING_OK; i++) {
        const state_piece *piece = &held.pieces[i];
        if (piece->tensor != tensor || strcmp(piece->state, STATE_PARAM) != 0)
            continue;
        status = state_piece_fetch(&held, piece);
        if (status == RING_OK)
            set_piece(held.place, piece, values);
        if (status == RING_OK)
            status = held.place->settle(held.place);
    }
    engine_state_free(&held);
    return status;
}
