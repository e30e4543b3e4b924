/* SPDX-License-Identifier: Apache-2.0
 * Implements the calls that describe an engine, read and set its tensors, and save and load
 * checkpoints and files of parameters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agree.h"
#include "engine_state.h"
#include "errors.h"
#include "params_dump.h"
#include "run_progress.h"
#include "step_folders.h"
#include "train_handle.h"

/* ---- Numbers ------------------------------------------------------------------------------- */

/* @return micro-batches of the current update for which ring_train_step() was called. */
static int micro_taken(const ring_train *engine)
{
    const open_update *update = &engine->update;
    return update->phase == OPEN_CLOSED ? 0 : update->micro - engine->awaits_step;
}

static bool at_boundary(const ring_train *engine)
{
    const open_update *update = &engine->update;
    const int micro_batches = update->phase == OPEN_CLOSED
                                  ? (int)engine->trainer.config.accumulation
                                  : update->micro_batches;
    return micro_taken(engine) + 1 == micro_batches;
}

static ring_train_info info_of(const ring_train *engine)
{
    const trainer *made = &engine->trainer;
    const train_model *network = engine_network(&made->engine);
    const train_config *config = &made->config;
    return (ring_train_info){.input = user_shape(&network->input),
                             .output = user_shape(&network->output),
                             .parameters = model_parameters(network),
                             .tensors = network->tensors.own_count,
                             .train_batch = config->train_batch,
                             .micro_batch = engine->micro,
                             .accumulation = (int)config->accumulation,
                             .zero_stage = (int)config->zero_stage,
                             .stages = made->grid.stages,
                             .updates_per_epoch = (long)made->shares.updates,
                             .step = made->step,
                             .micro_steps = made->micro_steps + micro_taken(engine),
                             .skipped = made->engine.overflow.skipped,
                             .epoch = made->epoch,
                             .at_boundary = at_boundary(engine),
                             .lr = handle_lr(engine, made->engine.optimizer.step + 1),
                             .loss_scale = made->engine.overflow.scaler.scale,
                             .loss = engine->result.loss,
                             .grad_norm = engine->result.grad_norm,
                             .state_bytes = engine_state_bytes(&made->engine),
                             .shares = made->grid.shares,
                             .share = made->grid.share,
                             .stage = made->grid.stage,
                             .tensor_ranks = made->grid.tensors,
                             .tensor_rank = made->grid.tensor,
                             .train_samples = made->train.count,
                             .test_samples = made->test.count,
                             .labels = shape_rows(&network->output),
                             .applied = engine->applied,
                             .gradient_clipping = config->gradient_clipping,
                             .precision = config->precision.params};
}

ring_status ring_train_get_info(const ring_train *engine, ring_train_info *info)
{
    if (engine == NULL || info == NULL || info->size < sizeof info->size)
        return train_fail(RING_ERR_ARGUMENT, "ring_train_get_info: engine or info is NULL, or "
                                             "info->size is not set");
    ring_train_info all = info_of(engine);
    all.size = info->size;
    memcpy(info, &all, info->size < sizeof all ? info->size : sizeof all);
    return RING_OK;
}

ring_status ring_train_set_lr(ring_train *engine, double lr)
{
    if (engine == NULL || !isfinite(lr))
        return train_fail(RING_ERR_ARGUMENT,
                          "ring_train_set_lr: the engine is NULL, or lr is not finite");
    engine->lr = lr;
    return RING_OK;
}

ring_status ring_train_scheduler_step(ring_train *engine)
{
    char text[256];
    if (engine == NULL)
        return train_fail(RING_ERR_ARGUMENT, "the engine is NULL");
    const bool has_schedule = engine->schedule != NULL ||
                              engine->trainer.config.schedule.kind != SCHEDULE_CONSTANT;
    if (engine->scheduler_noted || !has_schedule)
        return RING_OK;
    engine->scheduler_noted = true;
    snprintf(
        text, sizeof text,
        "the scheduler is stepped twice after update %ld: ring_train_step() has stepped it "
        "already, so ring_train_scheduler_step() has no effect; in DeepSpeed the schedule would "
        "advance twice as fast",
        engine->trainer.step);
    trainer_note(&engine->trainer, text);
    return RING_OK;
}

/* ---- Tensors ------------------------------------------------------------------------------- */

/* @return tensor @p index, where tied tensors are not counted; NULL if there is none. */
static const train_tensor *tensor_at(const ring_train *engine, int index)
{
    const tensor_table *tensors = &engine_network(&engine->trainer.engine)->tensors;
    for (int t = 0; t < tensors->count; t++) {
        if (tensors->list[t].tie < 0 && tensors->list[t].own == index)
            return &tensors->list[t];
    }
    return NULL;
}

ring_status ring_train_tensor(const ring_train *engine, int index, const char **name, size_t *dim,
                              int *dims, size_t *count)
{
    const train_tensor *tensor = engine != NULL ? tensor_at(engine, index) : NULL;
    if (tensor == NULL)
        return train_fail(RING_ERR_ARGUMENT,
                          "ring_train_tensor: the engine is NULL or has no tensor %d", index);
    if (name != NULL)
        *name = tensor->name;
    if (dim != NULL)
        memcpy(dim, tensor->shape, sizeof tensor->shape);
    if (dims != NULL)
        *dims = tensor->dims;
    if (count != NULL)
        *count = tensor->count;
    return RING_OK;
}

/* Finds the tensor @p name, or its original if it is tied, for a call with @p count values. */
static ring_status find_tensor(const ring_train *engine, const char *name, const void *values,
                               size_t count, const train_tensor **found)
{
    RING_TRY(handle_check_closed(engine, "reading or setting a tensor"));
    const tensor_table *tensors = &engine_network(&engine->trainer.engine)->tensors;
    *found = NULL;
    for (int t = 0; t < tensors->count && name != NULL; t++) {
        if (strcmp(tensors->list[t].name, name) == 0)
            *found = &tensors->list[tensors->list[t].tie >= 0 ? tensors->list[t].tie : t];
    }
    if (*found == NULL || values == NULL || (*found)->count != count)
        return train_fail(RING_ERR_ARGUMENT,
                          "values is NULL, or there is no tensor %s of %zu value%s; "
                          "ring_train_tensor() returns names and counts",
                          name != NULL ? name : "NULL", count, plural(count));
    return RING_OK;
}

ring_status ring_train_get_tensor(ring_train *engine, const char *name, float *values, size_t count)
{
    const train_tensor *tensor;
    const float *params;
    RING_TRY(find_tensor(engine, name, values, count, &tensor));
    RING_TRY(handle_settle(engine, engine_params(&engine->trainer.engine, &params)));
    memcpy(values, params + tensor->offset, count * sizeof *values);
    return RING_OK;
}

ring_status ring_train_set_tensor(ring_train *engine, const char *name, const float *values,
                                  size_t count)
{
    const train_tensor *tensor;
    RING_TRY(find_tensor(engine, name, values, count, &tensor));
    return handle_settle(engine, engine_set_param(&engine->trainer.engine, tensor, values));
}

/* ---- Checkpoints --------------------------------------------------------------------------- */

static ring_status check_saving(const ring_train *engine, const char *path, const char *call)
{
    RING_TRY(handle_check_closed(engine, call));
    return path != NULL ? RING_OK : train_fail(RING_ERR_ARGUMENT, "%s: the path is NULL", call);
}

static ring_status save(ring_train *engine, const char *dir)
{
    trainer *made = &engine->trainer;
    int lock = -1;
    RING_TRY(engine_check_params(&made->engine));
    ring_status status = agree(made->comm,
                               made->rank == 0 ? step_folders_open(dir, &lock) : RING_OK);
    if (status == RING_OK)
        status = progress_save(made, dir, engine->keep);
    step_folders_close(lock);
    return status;
}

ring_status ring_train_save(ring_train *engine, const char *dir)
{
    RING_TRY(check_saving(engine, dir, "ring_train_save()"));
    return handle_settle(engine, save(engine, dir));
}

static ring_status load(ring_train *engine, const char *path, char found[STORED_PATH_MAX])
{
    trainer *made = &engine->trainer;
    RING_TRY(agree(made->comm,
                   checkpoint_load(&made->engine, path, &made->run, trainer_note, made, found)));
    checkpoint_tell_changes(&made->run, trainer_note, made);
    progress_go_to(made, &made->run.place);
    return RING_OK;
}

ring_status ring_train_load(ring_train *engine, const char *path)
{
    char found[STORED_PATH_MAX];
    RING_TRY(check_saving(engine, path, "ring_train_load()"));
    return handle_settle(engine, load(engine, path, found));
}

ring_status ring_train_resume(ring_train *engine, const char *dir, int *found)
{
    char at[STORED_PATH_MAX] = "";
    RING_TRY(check_saving(engine, dir, "ring_train_resume()"));
    if (found == NULL)
        return train_fail(RING_ERR_ARGUMENT, "ring_train_resume(): found is NULL");
    const ring_status status = load(engine, dir, at);
    *found = status == RING_OK;
    if (status == RING_ERR_SYSTEM && at[0] == '\0')
        return RING_OK; /* the folder has no checkpoint yet */
    return handle_settle(engine, status);
}

/* ---- Files of parameters ------------------------------------------------------------------- */

static ring_status save_params(ring_train *engine, const char *path)
{
    trainer *made = &engine->trainer;
    const float *params;
    RING_TRY(engine_check_params(&made->engine));
    RING_TRY(engine_params(&made->engine, &params));
    return agree(made->comm,
                 made->rank == 0
                     ? params_file_write(path, &engine_network(&made->engine)->tensors, params)
                     : RING_OK);
}

ring_status ring_train_save_params(ring_train *engine, const char *path)
{
    RING_TRY(handle_check_closed(engine, "ring_train_save_params()"));
    if (path == NULL)
        return train_fail(RING_ERR_ARGUMENT, "ring_train_save_params(): the path is NULL");
    return handle_settle(engine, save_params(engine, path));
}

ring_status ring_train_load_params(ring_train *engine, const char *path)
{
    RING_TRY(check_saving(engine, path, "ring_train_load_params()"));
    return handle_settle(engine, checkpoint_init_params(&engine->trainer.engine, path));
}
