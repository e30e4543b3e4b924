/* SPDX-License-Identifier: Apache-2.0
 * Saves a checkpoint in a hidden folder: every rank writes its shard, and once all shards are on
 * the disk, rank 0 writes the manifest and renames the folder to its final name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "checkpoint.h"
#include "durable.h"
#include "errors.h"
#include "gemm.h"
#include "shard.h"
#include "step_folders.h"

ring_status checkpoint_describe(const train_engine *engine, bool compat, const char *norm,
                                char text[SETTINGS_TEXT_MAX])
{
    FILE *out = fmemopen(text, SETTINGS_TEXT_MAX, "w");
    if (out == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory for the list of settings");
    fprintf(out, "--loss=%s\n--compat=%s\nranks=%d\nmaths library=%s\n", loss_names[engine->loss],
            compat ? "ds-0.13" : "none", ring_comm_size(engine->world),
            engine->model.place->maths());
    if (norm != NULL) /* without normalization there is no such line */
        fprintf(out, "--normalize=%s\n", norm);
    config_list(engine->config, out);
    if (fclose(out) != 0)
        return train_fail(RING_ERR_INTERNAL, "the settings take more than %d bytes",
                          SETTINGS_TEXT_MAX);
    return RING_OK;
}

/* A checkpoint that is being written. */
typedef struct saving {
    train_engine *engine;
    const checkpoint_run *run;
    const char *dir;
    int keep;
    int ranks, rank;              /* of engine->world */
    char path[FOLDER_PATH_MAX];   /* the final folder */
    char hidden[FOLDER_PATH_MAX]; /* the folder while it is written */
    engine_state own;             /* state that this rank owns */
    manifest_shard *shards;       /* [ranks] length and hash of each shard */
} saving;

static ring_status begin(saving *save)
{
    const long step = save->run->place.step;
    RING_TRY(step_folders_path(save->dir, step, save->path));
    RING_TRY(step_folders_hidden(save->dir, step, save->hidden));
    RING_TRY(train_alloc((void **)&save->shards, (size_t)save->ranks * sizeof *save->shards,
                         "the shards"));
    RING_TRY(engine_state_list(save->engine, SHARE_OWN, &save->own));
    return save->rank == 0 ? step_folders_begin(save->dir, save->hidden) : RING_OK;
}

static ring_status write_shard(saving *save)
{
    char path[STORED_PATH_MAX];
    RING_TRY(shard_path(save->hidden, save->rank, path));
    return shard_write(path, &save->own, &save->shards[save->rank]);
}

/* ---- The manifest -------------------------------------------------------------------------- */

static bool has_state(const checkpoint_manifest *manifest, const char *state)
{
    for (int i = 0; i < manifest->state_count; i++) {
        if (strcmp(manifest->states[i], state) == 0)
            return true;
    }
    return false;
}

/* Lists the names of the states, and the numbers. Rank 0 owns elements of every state, since it
 * owns the first elements of the first bucket. */
static void fill_state(const engine_state *own, checkpoint_manifest *manifest)
{
    for (int i = 0; i < own->piece_count; i++) {
        if (!has_state(manifest, own->pieces[i].state))
            strcpy(manifest->states[manifest->state_count++], own->pieces[i].state);
    }
    for (int i = 0; i < own->number_count; i++) {
        manifest_number *number = &manifest->numbers[manifest->number_count++];
        strcpy(number->name, own->numbers[i].name);
        number->value = state_number_get(&own->numbers[i]);
    }
}

static ring_status fill_tensors(const train_engine *engine, checkpoint_manifest *manifest)
{
    const tensor_table *tensors = &engine_network(engine)->tensors;
    RING_TRY(train_alloc((void **)&manifest->tensors,
                         (size_t)tensors->count * sizeof *manifest->tensors, "the manifest"));
    for (int t = 0; t < tensors->count; t++) {
        const train_tensor *tensor = &tensors->list[t];
        if (tensor->tie >= 0)
            continue;
        manifest_tensor *to = &manifest->tensors[manifest->tensor_count++];
        to->dims = tensor->dims;
        to->order = engine_order(engine, t);
        memcpy(to->name, tensor->name, sizeof to->name);
        memcpy(to->shape, tensor->shape, sizeof to->shape);
    }
    return RING_OK;
}

static ring_status write_manifest(const saving *save, const checkpoint_manifest *manifest)
{
    char path[FOLDER_PATH_MAX + sizeof CHECKPOINT_MANIFEST + 1], *text;
    size_t length;
    RING_TRY(manifest_write(manifest, &text, &length));
    snprintf(path, sizeof path, "%s/%s", save->hidden, CHECKPOINT_MANIFEST);
    const ring_status status = durable_write_all(path, text, length);
    free(text);
    return status;
}

/* Writes the manifest and renames the folder; rank 0 only. */
static ring_status finish(saving *save)
{
    const checkpoint_run *run = save->run;
    checkpoint_manifest manifest = {.place = run->place,
                                    .identity = run->identity,
                                    .stage = save->engine->zero_stage,
                                    .shards = save->shards,
                                    .shard_count = save->ranks,
                                    .settings = run->settings};
    fill_state(&save->own, &manifest);
    ring_status status = fill_tensors(save->engine, &manifest);
    if (status == RING_OK)
        status = write_manifest(save, &manifest);
    free(manifest.tensors);
    if (status == RING_OK)
        status = step_folders_finish(save->dir, save->hidden, save->path, run->place.step,
                                     save->keep);
    return status;
}

static ring_status save_all(saving *save)
{
    ring_comm *comm = save->engine->world;
    RING_TRY(agree(comm, begin(save)));
    RING_TRY(agree(comm, write_shard(save)));
    RING_TRY(train_ring(comm, ring_all_gather(&save->shards[save->rank], save->shards,
                                              sizeof *save->shards / sizeof(uint64_t), RING_UINT64,
                                              comm, NULL)));
    return agree(comm, save->rank == 0 ? finish(save) : RING_OK);
}

ring_status checkpoint_save(train_engine *engine, const char *dir, const checkpoint_run *run,
                            int keep)
{
    saving save = {.engine = engine,
                   .run = run,
                   .dir = dir,
                   .keep = keep,
                   .ranks = ring_comm_size(engine->world),
                   .rank = ring_comm_rank(engine->world)};
    const ring_status status = save_all(&save);
    if (status != RING_OK && save.rank == 0 && save.hidden[0] != '\0')
        step_folders_remove(save.hidden); /* frees the space on the disk */
    engine_state_free(&save.own);
    free(save.shards);
    return status;
}
