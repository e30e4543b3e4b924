/* SPDX-License-Identifier: Apache-2.0
 * Names the ranges of a shard and copies their values to and from memory. Memory and file have the
 * same byte order and types, so values are written without conversion. */
#include "shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "durable.h"
#include "element_casts.h"
#include "errors.h"

enum {
    BLOCK = 16384,    /* elements that are read and cast at a time */
    FETCHED = 1 << 20 /* bytes that are fetched from a mapped file and written at a time */
};

ring_status shard_path(const char *folder, int rank, char path[STORED_PATH_MAX])
{
    if (snprintf(path, STORED_PATH_MAX, "%s/rank-%05d.safetensors", folder, rank) < STORED_PATH_MAX)
        return RING_OK;
    return train_fail(RING_ERR_CONFIG, "%.200s…: the path is too long", folder);
}

void shard_tensor_name(const char *state, const char *tensor, char name[STORED_NAME_MAX])
{
    snprintf(name, STORED_NAME_MAX, "%s/%s", state, tensor);
}

/* Makes the header of a shard, which names all pieces. The caller frees *head. */
static ring_status make_head(const engine_state *state, char **head, size_t *bytes)
{
    safetensors_entry *entries;
    RING_TRY(train_alloc((void **)&entries, (size_t)state->piece_count * sizeof *entries,
                         "the list of a shard"));
    for (int i = 0; i < state->piece_count; i++) {
        const state_piece *piece = &state->pieces[i];
        safetensors_entry *entry = &entries[i];
        char name[STORED_NAME_MAX];
        shard_tensor_name(piece->state, piece->tensor->name, name);
        snprintf(entry->name, sizeof entry->name, "%s@%zu", name, piece->begin);
        entry->type = piece->type;
        entry->dims = 1;
        entry->shape[0] = piece->count;
    }
    const ring_status status = safetensors_head(entries, state->piece_count, head, bytes);
    free(entries);
    return status;
}

/* Writes the values of a piece that are not in the host's memory. */
static ring_status write_placed(durable_file *file, const nn_place *place, const state_piece *piece)
{
    float block[BLOCK];
    const unsigned char *values = piece->values;
    const size_t bytes = piece->count * precision_size(piece->type);
    for (size_t done = 0; done < bytes;) {
        const size_t left = bytes - done, now = left < sizeof block ? left : sizeof block;
        place->read(place, block, values + done, now);
        RING_TRY(place->settle(place));
        RING_TRY(durable_write(file, block, now));
        done += now;
    }
    return RING_OK;
}

/* Writes the values of a piece, which may be in a mapped file. They are fetched a little at a time,
 * because an access to them after the fetch kills the process if the disk has failed meanwhile. */
static ring_status write_values(durable_file *file, const engine_state *state,
                                const state_piece *piece)
{
    const unsigned char *values = piece->values;
    const size_t bytes = piece->count * precision_size(piece->type);
    for (size_t done = 0; done < bytes;) {
        const size_t left = bytes - done, now = left < FETCHED ? left : FETCHED;
        if (!offload_fetch(state->offload, values + done, now, false))
            return train_failure_tell(&state->offload->failure);
        RING_TRY(durable_write(file, values + done, now));
        done += now;
    }
    return RING_OK;
}

ring_status shard_write(const char *path, const engine_state *state, manifest_shard *shard)
{
    char *head;
    size_t bytes;
    durable_file file;
    RING_TRY(make_head(state, &head, &bytes));
    ring_status status = durable_begin(&file, path);
    if (status == RING_OK)
        status = durable_write(&file, head, bytes);
    for (int i = 0; i < state->piece_count && status == RING_OK; i++)
        status = state->place->is_host ? write_values(&file, state, &state->pieces[i])
                                       : write_placed(&file, state->place, &state->pieces[i]);
    free(head);
    if (status != RING_OK) {
        durable_discard(&file);
        return status;
    }
    shard->bytes = file.bytes;
    return durable_finish(&file, &shard->hash);
}

ring_status shard_check(const char *path, const manifest_shard *shard)
{
    uint64_t hash, bytes;
    RING_TRY(durable_hash_file(path, &hash, &bytes));
    if (bytes != shard->bytes)
        return train_fail(RING_ERR_SYSTEM,
                          "%s: %" PRIu64 " bytes, but %" PRIu64 " were written: the file is "
                          "truncated or from another checkpoint",
                          path, bytes, shard->bytes);
    if (hash != shard->hash)
        return train_fail(RING_ERR_SYSTEM,
                          "%s: hash %016" PRIx64 ", but %016" PRIx64 " was written: the file has "
                          "been changed or damaged",
                          path, hash, shard->hash);
    return RING_OK;
}

static ring_status open_all(const char *folder, int shards, char (*paths)[STORED_PATH_MAX],
                            const char **list, stored_tensors *stored)
{
    for (int s = 0; s < shards; s++) {
        RING_TRY(shard_path(folder, s, paths[s]));
        list[s] = paths[s];
    }
    return stored_open(stored, list, shards, false);
}

ring_status shards_open(const char *folder, int shards, stored_tensors *stored)
{
    char(*paths)[STORED_PATH_MAX] = malloc((size_t)shards * sizeof *paths);
    const char **list = malloc((size_t)shards * sizeof *list);
    ring_status status = RING_ERR_MEMORY;
    *stored = (stored_tensors){.fd = -1};
    if (paths != NULL && list != NULL)
        status = open_all(folder, shards, paths, list, stored);
    else
        train_fail(status, "%s: no memory for the list of its shards", folder);
    free(list);
    free(paths);
    return status;
}

ring_status shard_read_piece(stored_tensors *stored, const char *name, const tensor_order *order,
                             const nn_place *place, const state_piece *piece)
{
    float block[BLOCK];
    unsigned char *to = piece->values;
    size_t now;
    for (size_t done = 0; done < piece->count; done += now) {
        const size_t element = state_piece_element(piece, done, &now);
        now = now < BLOCK ? now : BLOCK;
        RING_TRY(stored_read(stored, name, order, element, now, block));
        if (!place->is_host) { /* float32 */
            place->write(place, (float *)(void *)to + done, block, now * sizeof *block);
            RING_TRY(place->settle(place));
            continue;
        }
        cast_elements(to + done * precision_size(piece->type), piece->type, block, RING_FLOAT32,
                      now);
    }
    return RING_OK;
}
