/* SPDX-License-Identifier: Apache-2.0
 * Loads a checkpoint. Identity, hashes, names, shapes and ranges are checked before the engine
 * changes, and all ranks agree after each check. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agree.h"
#include "checkpoint.h"
#include "engine_state.h"
#include "errors.h"
#include "settings_diff.h"
#include "shard.h"
#include "step_folders.h"

/* A checkpoint that is checked and loaded by all ranks of an engine, or only checked by one
 * process.
 */
typedef struct loading {
    train_engine *engine;         /* NULL: one process checks the checkpoint alone */
    checkpoint_run *run;          /* this run; NULL without an engine */
    char path[STORED_PATH_MAX];   /* folder of the checkpoint */
    checkpoint_manifest manifest; /* its manifest */
    stored_tensors stored;        /* its shards */
    engine_state held;            /* state that this rank holds and will load */
} loading;

/* Agrees on the status with all ranks of the engine, if there is one. */
static ring_status agreed(const loading *load, ring_status mine)
{
    return load->engine != NULL ? agree(load->engine->world, mine) : mine;
}

static ring_status read_manifest(loading *load)
{
    char path[STORED_PATH_MAX + sizeof CHECKPOINT_MANIFEST + 1];
    snprintf(path, sizeof path, "%s/%s", load->path, CHECKPOINT_MANIFEST);
    manifest_free(&load->manifest);
    return manifest_read(&load->manifest, path);
}

/* Checks length and hash of the shards. Each rank checks some of them. */
static ring_status check_shards(const loading *load)
{
    const int ranks = load->engine != NULL ? ring_comm_size(load->engine->world) : 1;
    const int rank = load->engine != NULL ? ring_comm_rank(load->engine->world) : 0;
    for (int s = rank; s < load->manifest.shard_count; s += ranks) {
        char path[STORED_PATH_MAX];
        RING_TRY(shard_path(load->path, s, path));
        RING_TRY(shard_check(path, &load->manifest.shards[s]));
    }
    return RING_OK;
}

/* ---- Comparing with this run --------------------------------------------------------------- */

static ring_status check_identity(const loading *load)
{
    const run_identity *own = &load->run->identity, *its = &load->manifest.identity;
    if (own->model_hash != its->model_hash)
        return train_fail(RING_ERR_CONFIG,
                          "%s is a checkpoint of model %s, which differs from this run's model %s; "
                          "give the --model of the checkpoint",
                          load->path, its->model, own->model);
    if (own->data_hash != its->data_hash)
        return train_fail(RING_ERR_CONFIG,
                          "%s was trained on other data; give the same --data, or load only its "
                          "parameters by ringtrain export and --init",
                          load->path);
    if (own->seed != its->seed)
        return train_fail(RING_ERR_CONFIG,
                          "%s is of a run with --seed %llu, not %llu; give the same --seed",
                          load->path, (unsigned long long)its->seed, (unsigned long long)own->seed);
    return RING_OK;
}

/* Checks that the checkpoint has the names and shapes of this run's tensors, in the same order. */
static ring_status check_tensors(const loading *load)
{
    const tensor_table *tensors = &engine_network(load->engine)->tensors;
    int at = 0;
    for (int t = 0; t < tensors->count; t++) {
        const train_tensor *tensor = &tensors->list[t];
        if (tensor->tie >= 0)
            continue;
        const manifest_tensor *its = at < load->manifest.tensor_count
                                         ? &load->manifest.tensors[at++]
                                         : &(const manifest_tensor){.name = "none"};
        if (strcmp(its->name, tensor->name) != 0 ||
            memcmp(its->shape, tensor->shape, sizeof its->shape) != 0)
            return train_fail(RING_ERR_CONFIG,
                              "%s is of another model: in place of this run's tensor %s it has %s, "
                              "or another shape; give the --model of the checkpoint",
                              load->path, tensor->name, its->name);
    }
    return RING_OK;
}

static bool is_listed(const checkpoint_manifest *manifest, const char *state)
{
    for (int i = 0; i < manifest->state_count; i++) {
        if (strcmp(manifest->states[i], state) == 0)
            return true;
    }
    return false;
}

static bool is_used(const engine_state *held, const char *state)
{
    for (int i = 0; i < held->piece_count; i++) {
        if (strcmp(held->pieces[i].state, state) == 0)
            return true;
    }
    return false;
}

#define OTHER_OPTIMIZER \
    "configure the same optimizer, or load only the parameters by ringtrain export and --init"

/* Checks that the checkpoint has the same states as this run's optimiser. A rank that holds no
 * tensors lists no states, so it cannot know of superfluous ones. */
static ring_status check_states(const loading *load)
{
    const engine_state *held = &load->held;
    for (int i = 0; i < held->piece_count; i++) {
        if (!is_listed(&load->manifest, held->pieces[i].state))
            return train_fail(
                RING_ERR_CONFIG,
                "%s is of a run with another optimizer, which has no %s; " OTHER_OPTIMIZER,
                load->path, held->pieces[i].state);
    }
    for (int i = 0; i < load->manifest.state_count && held->piece_count > 0; i++) {
        if (!is_used(held, load->manifest.states[i]))
            return train_fail(
                RING_ERR_CONFIG,
                "%s is of a run with another optimizer, which also has %s; " OTHER_OPTIMIZER,
                load->path, load->manifest.states[i]);
    }
    return RING_OK;
}

static const manifest_number *find_number(const checkpoint_manifest *manifest, const char *name)
{
    for (int i = 0; i < manifest->number_count; i++) {
        if (strcmp(manifest->numbers[i].name, name) == 0)
            return &manifest->numbers[i];
    }
    return NULL;
}

/* Checks that all numbers of the state are there unless they are optional, and fit their types. */
static ring_status check_numbers(const loading *load)
{
    for (int i = 0; i < load->held.number_count; i++) {
        const state_number *number = &load->held.numbers[i];
        const manifest_number *stored = find_number(&load->manifest, number->name);
        const bool fits = stored == NULL ? number->optional
                                         : number->real != NULL || fabs(stored->value) <= INT_MAX;
        if (!fits)
            return train_fail(RING_ERR_SYSTEM, "%s: its number %s is missing or too large",
                              load->path, number->name);
    }
    return RING_OK;
}

/* Checks that the shards together have all elements of each tensor that this rank holds a part of.
 */
static ring_status check_ranges(const loading *load)
{
    for (int i = 0; i < load->held.piece_count; i++) {
        const state_piece *piece = &load->held.pieces[i];
        char name[STORED_NAME_MAX];
        shard_tensor_name(piece->state, piece->tensor->name, name);
        const size_t count = stored_count(&load->stored, name);
        if (count != piece->tensor->count)
            return train_fail(RING_ERR_SYSTEM,
                              "%s: the shards have %zu element%s of %s instead of %zu", load->path,
                              count, plural(count), name, piece->tensor->count);
    }
    return RING_OK;
}

static ring_status check_run(loading *load)
{
    engine_state_free(&load->held);
    RING_TRY(check_identity(load));
    RING_TRY(check_tensors(load));
    RING_TRY(engine_state_list(load->engine, SHARE_HELD, &load->held));
    RING_TRY(check_states(load));
    return check_numbers(load);
}

static ring_status open_shards(loading *load)
{
    stored_free(&load->stored);
    RING_TRY(shards_open(load->path, load->manifest.shard_count, &load->stored));
    return check_ranges(load);
}

/* ---- Candidates ---------------------------------------------------------------------------- */

static ring_status try_folder(loading *load)
{
    RING_TRY(agreed(load, read_manifest(load)));
    if (load->engine != NULL)
        RING_TRY(agreed(load, check_run(load)));
    RING_TRY(agreed(load, check_shards(load)));
    return load->engine != NULL ? agreed(load, open_shards(load)) : RING_OK;
}

/* Finds the newest checkpoint before *step. If the folder cannot be read, it is set as the path
 * that was tried, so that the caller can distinguish it from an empty folder. */
static ring_status look_before(loading *load, const char *dir, int64_t *step)
{
    long found;
    const ring_status status = step_folders_before(dir, (long)*step, &found);
    if (status != RING_OK)
        snprintf(load->path, sizeof load->path, "%s", dir);
    *step = found;
    return status;
}

/* Rank 0 finds the next checkpoint for all ranks, since a network file system may show new folders
 * later on other hosts. */
static ring_status next_step(loading *load, const char *dir, int64_t *step)
{
    ring_comm *comm = load->engine != NULL ? load->engine->world : NULL;
    if (comm == NULL)
        return look_before(load, dir, step);
    const bool asks = ring_comm_rank(comm) == 0;
    RING_TRY(agree(comm, asks ? look_before(load, dir, step) : RING_OK));
    return train_ring(comm, ring_broadcast(step, step, 1, RING_INT64, 0, comm, NULL));
}

/* Tries the checkpoints of a folder from the newest to the oldest. Damaged ones are skipped; one of
 * another run or version is an error. */
static ring_status try_folders(loading *load, const char *dir, checkpoint_note_fn *note,
                               void *context)
{
    int64_t step = LONG_MAX;
    int skipped = 0;
    for (load->path[0] = '\0';; skipped++) {
        RING_TRY(next_step(load, dir, &step));
        if (step < 0)
            break;
        RING_TRY(step_folders_path(dir, (long)step, load->path));
        const ring_status status = try_folder(load);
        if (status != RING_ERR_SYSTEM)
            return status;
        char text[TRAIN_ERROR_MAX];
        snprintf(text, sizeof text, "not used: %s", train_error());
        note(context, text);
    }
    if (skipped == 0 && access(dir, F_OK) != 0)
        return train_folder_fail(dir);
    if (skipped == 0)
        return train_fail(RING_ERR_SYSTEM, "%s: there is no checkpoint (step-NNNNNNNN) in it", dir);
    return train_fail(RING_ERR_SYSTEM,
                      "%s: %d checkpoint%s in it, all damaged; see the notes above", dir, skipped,
                      plural(skipped));
}

static ring_status try_path(loading *load, const char *path, checkpoint_note_fn *note,
                            void *context)
{
    if (!step_folders_is_step(path))
        return try_folders(load, path, note, context);
    if (snprintf(load->path, sizeof load->path, "%s", path) >= (int)sizeof load->path)
        return train_fail(RING_ERR_CONFIG, "%.200s…: the path is too long", path);
    return try_folder(load);
}

/* ---- Loading ------------------------------------------------------------------------------- */

/* Reads all pieces of the state and all numbers into the engine. */
static ring_status read_pieces(loading *load)
{
    for (int i = 0; i < load->held.piece_count; i++) {
        const state_piece *piece = &load->held.pieces[i];
        char name[STORED_NAME_MAX];
        shard_tensor_name(piece->state, piece->tensor->name, name);
        const manifest_tensor *its = manifest_find(&load->manifest, piece->tensor->name);
        RING_TRY(state_piece_fetch(&load->held, piece));
        RING_TRY(shard_read_piece(&load->stored, name, &its->order, load->held.place, piece));
    }
    for (int i = 0; i < load->held.number_count; i++) {
        const state_number *number = &load->held.numbers[i];
        const manifest_number *stored = find_number(&load->manifest, number->name);
        if (stored != NULL)
            state_number_set(number, stored->value);
    }
    return RING_OK;
}

static void free_all(loading *load)
{
    manifest_free(&load->manifest);
    stored_free(&load->stored);
    engine_state_free(&load->held);
}

ring_status checkpoint_load(train_engine *engine, const char *path, checkpoint_run *run,
                            checkpoint_note_fn *note, void *context, char found[STORED_PATH_MAX])
{
    loading load = {.engine = engine, .run = run, .stored = {.fd = -1}};
    ring_status status = try_path(&load, path, note, context);
    if (status == RING_OK)
        status = agreed(&load, read_pieces(&load));
    if (status == RING_OK) {
        free(run->before);
        run->before = load.manifest.settings;
        load.manifest.settings = NULL;
        run->place = load.manifest.place;
        run->ranks = load.manifest.shard_count;
    }
    memcpy(found, load.path, sizeof load.path);
    free_all(&load);
    return status;
}

void checkpoint_tell_changes(checkpoint_run *run, checkpoint_note_fn *note, void *context)
{
    settings_tell_changes(run->before, run->settings, note, context);
    free(run->before);
    run->before = NULL;
}

ring_status checkpoint_find(const char *path, checkpoint_manifest *manifest,
                            checkpoint_note_fn *note, void *context, char found[STORED_PATH_MAX])
{
    loading load = {.stored = {.fd = -1}};
    const ring_status status = try_path(&load, path, note, context);
    *manifest = load.manifest;
    load.manifest = (checkpoint_manifest){0};
    memcpy(found, load.path, sizeof load.path);
    free_all(&load);
    return status;
}
