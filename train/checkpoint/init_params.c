/* SPDX-License-Identifier: Apache-2.0
 * Sets a model's parameters from a safetensors file. Names and shapes must match the model's, as
 * load_state_dict() requires. */
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "checkpoint.h"
#include "engine_state.h"
#include "errors.h"
#include "shard.h"

static ring_status check_entry(const stored_range *entry, const tensor_table *tensors,
                               const char *path)
{
    /* The file may also contain tied tensors, but only their originals are read. */
    const train_tensor *tensor = tensors_find(tensors, entry->name);
    if (tensor == NULL)
        return train_fail(RING_ERR_CONFIG,
                          "--init %s: the model has no tensor %s; give the --model of the file",
                          path, entry->name);
    if (entry->dims != tensor->dims ||
        memcmp(entry->shape, tensor->shape, (size_t)tensor->dims * sizeof *tensor->shape) != 0)
        return train_fail(
            RING_ERR_CONFIG,
            "--init %s: %s has another shape than the model's; give the --model of the "
            "file",
            path, entry->name);
    return RING_OK;
}

static ring_status check_tensors(const stored_tensors *stored, const tensor_table *tensors,
                                 const char *path)
{
    for (int i = 0; i < stored->count; i++)
        RING_TRY(check_entry(&stored->ranges[i], tensors, path));
    for (int t = 0; t < tensors->count; t++) {
        const train_tensor *tensor = &tensors->list[t];
        if (tensor->tie < 0 && stored_find(stored, tensor->name) == NULL)
            return train_fail(RING_ERR_CONFIG,
                              "--init %s: the file has no tensor %s, which the model has; give the "
                              "--model of the file",
                              path, tensor->name);
    }
    return RING_OK;
}

/* Reads the file into all parameters that this rank holds. */
static ring_status read_held(stored_tensors *stored, const engine_state *held)
{
    for (int i = 0; i < held->piece_count; i++) {
        const state_piece *piece = &held->pieces[i];
        const tensor_order order = tensor_order_whole(piece->tensor->count);
        if (strcmp(piece->state, STATE_PARAM) != 0)
            continue;
        RING_TRY(state_piece_fetch(held, piece));
        RING_TRY(shard_read_piece(stored, piece->tensor->name, &order, held->place, piece));
    }
    return RING_OK;
}

static ring_status read_params(train_engine *engine, const char *path, stored_tensors *stored,
                               engine_state *held)
{
    RING_TRY(stored_open(stored, &path, 1, true));
    RING_TRY(check_tensors(stored, &engine_network(engine)->tensors, path));
    RING_TRY(engine_state_list(engine, SHARE_HELD, held));
    return read_held(stored, held);
}

ring_status checkpoint_init_params(train_engine *engine, const char *path)
{
    stored_tensors stored = {.fd = -1};
    engine_state held = {0};
    const ring_status status = agree(engine->world, read_params(engine, path, &stored, &held));
    stored_free(&stored);
    engine_state_free(&held);
    return status;
}
