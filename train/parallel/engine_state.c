/* SPDX-License-Identifier: Apache-2.0
 * Ranges of the flat buffers, cut at the borders of tensors. */
#include "engine_state.h"

#include <stdlib.h>

#include "errors.h"

/* An array over the partition: over all of it, or over what this rank owns. */
typedef struct state_array {
    const char *state;
    ring_dtype type;
    unsigned char *values; /* NULL: not there */
    bool split;
} state_array;

enum { ARRAYS = 4 };

/* ---- What there is ------------------------------------------------------------------------- */

static state_array from_memory(const zero_array *array)
{
    return (state_array){STATE_PARAM, array->type, array->data, array->layout == LAYOUT_OWN};
}

/* Masters are what the parameters are: those of 16 bits are only read by nodes. */
static void list_arrays(const train_engine *engine, state_share share, state_array arrays[ARRAYS])
{
    const train_optimizer *optimizer = &engine->optimizer;
    const zero_memory *memory = &engine->memory;
    const bool split = engine->stage > 0, masters = memory->own_masters.data != NULL;
    arrays[0] = from_memory(masters ? &memory->own_masters : &memory->params);
    arrays[1] = masters && share == SHARE_HELD ? from_memory(&memory->params) : (state_array){0};
    arrays[2] = (state_array){optimizer_state_name(&optimizer->config, 0), RING_FLOAT32,
                              (unsigned char *)optimizer->first, split};
    arrays[3] = (state_array){optimizer_state_name(&optimizer->config, 1), RING_FLOAT32,
                              (unsigned char *)optimizer->second, split};
}

static void add_number(engine_state *state, state_number number)
{
    state->numbers[state->number_count++] = number;
}

/* A run that begins to scale its loss starts with a scale of its own. */
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

/* Part of a bucket, in the flat buffers; @p values are those of its first element. */
typedef struct flat_range {
    size_t begin, count;
    unsigned char *values;
} flat_range;

static flat_range range_of(const train_engine *engine, const state_array *array, int bucket,
                           state_share share)
{
    const partition_bucket *at = &engine->partition.buckets[bucket];
    const size_t own = at->offset + (size_t)engine->rank * at->part;
    const size_t size = precision_size(array->type);
    if (array->split)
        return (flat_range){own, at->part, array->values + at->own * size};
    if (share == SHARE_OWN)
        return (flat_range){own, at->part, array->values + own * size};
    return (flat_range){at->offset, at->count, array->values + at->offset * size};
}

static void add_piece(engine_state *state, const state_array *array, const train_tensor *tensor,
                      const flat_range *range)
{
    const size_t tensor_end = tensor->offset + tensor->count,
                 range_end = range->begin + range->count;
    const size_t begin = tensor->offset > range->begin ? tensor->offset : range->begin;
    const size_t end = tensor_end < range_end ? tensor_end : range_end;
    if (begin >= end)
        return;
    state->pieces[state->piece_count++] = (state_piece){.state = array->state,
                                                        .tensor = tensor,
                                                        .begin = begin - tensor->offset,
                                                        .count = end - begin,
                                                        .type = array->type,
                                                        .values = range->values +
                                                                  (begin - range->begin) *
                                                                      precision_size(array->type)};
}

static void add_array(const train_engine *engine, const state_array *array, state_share share,
                      engine_state *state)
{
    const tensor_table *tensors = &engine->model.tensors;
    for (int b = 0; b < engine->partition.count; b++) {
        const flat_range range = range_of(engine, array, b, share);
        for (int t = 0; t < tensors->count; t++) {
            if (tensors->list[t].tie < 0)
                add_piece(state, array, &tensors->list[t], &range);
        }
    }
}

ring_status engine_state_list(train_engine *engine, state_share share, engine_state *state)
{
    state_array arrays[ARRAYS];
    *state = (engine_state){0};
    /* A tensor lies in one bucket, which cuts a range of it off. */
    const size_t most = (size_t)ARRAYS * (size_t)engine->model.tensors.count;
    RING_TRY(train_alloc((void **)&state->pieces, most * sizeof *state->pieces,
                         "the list of the engine's state"));
    list_arrays(engine, share, arrays);
    for (int a = 0; a < ARRAYS; a++) {
        if (arrays[a].values != NULL)
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
