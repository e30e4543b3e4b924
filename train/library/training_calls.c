/* SPDX-License-Identifier: Apache-2.0
 * Implements the caller's training loop: batches, forward, loss, backward and step, or whole
 * updates. */
#include <stddef.h>

#include "errors.h"
#include "run_progress.h"
#include "train_handle.h"

/* ---- Checks of all calls ------------------------------------------------------------------- */

ring_status handle_settle(ring_train *engine, ring_status status)
{
    if (status != RING_OK && !train_error_is_shared())
        ring_comm_abort(engine->trainer.comm, train_error());
    return status;
}

static ring_status check_engine(const ring_train *engine)
{
    return engine != NULL ? RING_OK : train_fail(RING_ERR_ARGUMENT, "the engine is NULL");
}

ring_status handle_check_closed(const ring_train *engine, const char *what)
{
    RING_TRY(check_engine(engine));
    if (engine->update.phase == OPEN_CLOSED && !engine->next.is_out)
        return RING_OK;
    return train_fail(RING_ERR_USAGE,
                      "%s within an update: take its %d micro-batches through forward, loss, "
                      "backward and step before",
                      what, (int)engine->trainer.config.accumulation);
}

ring_status handle_check_no_stages(const ring_train *engine)
{
    RING_TRY(check_engine(engine));
    if (engine->trainer.grid.stages == 1)
        return RING_OK;
    return train_fail(RING_ERR_USAGE, "only ring_train_train_batch() is accessible in pipeline "
                                      "mode: its stages are at different micro-batches");
}

/* Whether the caller says the rate, of all parameter groups, and not the configuration. */
static bool has_own_lr(const ring_train *engine)
{
    return engine->lr >= 0.0 || engine->schedule != NULL;
}

double handle_lr(const ring_train *engine, long update)
{
    if (engine->lr >= 0.0)
        return engine->lr;
    if (engine->schedule != NULL)
        return engine->schedule(engine->schedule_context, update);
    return schedule_lr(&engine->trainer.config.schedule, engine->trainer.config.optimizer.lr,
                       update, engine->trainer.compat);
}

/* @return the rate of the next update. */
static double begin_rates(ring_train *engine)
{
    if (!has_own_lr(engine))
        return progress_set_rates(&engine->trainer, NULL);
    const double lr = handle_lr(engine, engine->trainer.engine.optimizer.step + 1);
    return progress_set_rates(&engine->trainer, &lr);
}

static ring_status check_data(const ring_train *engine)
{
    RING_TRY(check_engine(engine));
    if (engine->trainer.train.count > 0)
        return RING_OK;
    return train_fail(RING_ERR_USAGE, "the engine was made without data: set data or train in its "
                                      "options, or give batches to ring_train_forward()");
}

static bool has_output(const ring_train *engine)
{
    return engine->update.phase == OPEN_HAS_OUTPUT || engine->update.phase == OPEN_HAS_LOSS;
}

/* ---- Batches ------------------------------------------------------------------------------- */

static ring_status check_next(const ring_train *engine)
{
    RING_TRY(check_data(engine));
    RING_TRY(handle_check_no_stages(engine));
    if (engine->next.is_out || engine->awaits_step || has_output(engine))
        return train_fail(RING_ERR_USAGE, "the batch before is to go through ring_train_forward(), "
                                          "_backward() and _step() first");
    if (engine->update.phase != OPEN_CLOSED && engine->owns_update)
        return train_fail(RING_ERR_USAGE, "the update was begun with batches of the caller's: "
                                          "finish it with such ones");
    return RING_OK;
}

ring_status ring_train_next(ring_train *engine, ring_train_batch *batch, int *more)
{
    RING_TRY(check_next(engine));
    if (batch == NULL || more == NULL || batch->size != sizeof *batch)
        return train_fail(RING_ERR_ARGUMENT, "no batch or more: begin with RING_TRAIN_BATCH_INIT");
    *more = engine->update.phase != OPEN_CLOSED || !progress_epoch_over(&engine->trainer);
    if (*more == 0) {
        progress_begin_epoch(&engine->trainer, engine->trainer.epoch + 1);
        return RING_OK;
    }
    if (engine->update.phase == OPEN_CLOSED) {
        engine->share = progress_share(&engine->trainer);
        engine->next.taken = 0;
    }
    return handle_settle(engine, handle_take_next(engine, batch));
}

/* ---- Forward ------------------------------------------------------------------------------- */

static ring_status check_forward(const ring_train *engine, bool owns)
{
    RING_TRY(handle_check_no_stages(engine));
    if (engine->awaits_step)
        return train_fail(RING_ERR_USAGE, "forward: ring_train_step() must follow each backward");
    if (has_output(engine))
        return train_fail(RING_ERR_USAGE, "forward: the forward before waits for its loss and "
                                          "ring_train_backward()");
    if (owns && engine->next.is_out)
        return train_fail(RING_ERR_USAGE, "forward: the batch of ring_train_next() comes first");
    if (!owns && !engine->next.is_out)
        return train_fail(RING_ERR_USAGE, "forward: the batch of ring_train_next() went through "
                                          "already, or was dropped; ask for the next one");
    if (engine->update.phase != OPEN_CLOSED && engine->owns_update != owns)
        return train_fail(RING_ERR_USAGE,
                          "forward: the update was begun with batches of %s: "
                          "finish it with such ones",
                          engine->owns_update ? "the caller's" : "ring_train_next()");
    return RING_OK;
}

static ring_status check_batch(const ring_train *engine, const ring_train_batch *batch, bool owns)
{
    if (owns && (batch->inputs == NULL || batch->rows < 1 || batch->rows > engine->micro))
        return train_fail(RING_ERR_ARGUMENT,
                          "forward: a batch of %zu sample%s; this rank's micro-batches have 1 to "
                          "%zu, with inputs",
                          batch->rows, plural(batch->rows), engine->micro);
    if (!owns && batch->rows != engine->next.rows)
        return train_fail(RING_ERR_ARGUMENT,
                          "forward: %zu sample%s of a batch for which ring_train_next() gave %zu",
                          batch->rows, plural(batch->rows), engine->next.rows);
    return RING_OK;
}

/* All that the configuration says, since a caller's data have no end. */
static engine_share whole_share(const ring_train *engine)
{
    return (engine_share){.total = (size_t)engine->trainer.config.train_batch,
                          .micro_batches = (int)engine->trainer.config.accumulation};
}

static ring_status begin(ring_train *engine, bool owns)
{
    if (engine->update.phase != OPEN_CLOSED)
        return RING_OK;
    const engine_share share = owns ? whole_share(engine) : engine->share;
    engine->owns_update = owns;
    return open_update_begin(&engine->update, &engine->trainer.engine, &share);
}

/* Dropout draws by these. */
static const uint32_t *number(ring_train *engine, const ring_train_batch *batch)
{
    const size_t before = (size_t)engine->trainer.micro_steps + (size_t)engine->update.micro;
    const size_t batches = before * (size_t)engine->trainer.grid.shares +
                           (size_t)engine->trainer.grid.share;
    for (size_t i = 0; i < batch->rows && batch->samples == NULL; i++)
        engine->numbers[i] = (uint32_t)(batches * engine->micro + i);
    return batch->samples != NULL ? batch->samples : engine->numbers;
}

ring_status ring_train_forward(ring_train *engine, const ring_train_batch *batch,
                               const float **outputs)
{
    RING_TRY(check_engine(engine));
    if (batch == NULL || batch->size != sizeof *batch)
        return train_fail(RING_ERR_ARGUMENT, "forward: no batch: begin with RING_TRAIN_BATCH_INIT");
    const bool owns = batch->inputs != engine->next.inputs || batch->inputs == NULL;
    const bool is_short = owns && batch->rows < engine->micro;
    RING_TRY(check_forward(engine, owns));
    RING_TRY(check_batch(engine, batch, owns));
    RING_TRY(handle_settle(engine, begin(engine, owns)));
    engine->given.inputs = batch->inputs;
    const update_samples samples = {.dataset = &engine->batches,
                                    .order = number(engine, batch),
                                    .rows = batch->rows,
                                    .weight = is_short ? (double)engine->micro / (double)batch->rows
                                                       : 1.0};
    if (outputs != NULL)
        *outputs = model_output(&engine->trainer.engine.model, 0);
    engine->next.is_out = false;
    return handle_settle(engine, open_update_forward(&engine->update, &samples));
}

/* ---- Loss, backward, step ------------------------------------------------------------------ */

static ring_status check_output(const ring_train *engine)
{
    RING_TRY(check_engine(engine));
    if (has_output(engine))
        return RING_OK;
    return train_fail(RING_ERR_USAGE, "a loss needs ring_train_forward() before it");
}

ring_status ring_train_loss(ring_train *engine, const uint32_t *labels, double *loss)
{
    RING_TRY(check_output(engine));
    const op_shape *output = &engine->trainer.engine.model.output;
    if (labels == NULL)
        return train_fail(RING_ERR_ARGUMENT, "ring_train_loss: labels is NULL");
    RING_TRY(user_labels_check(output, labels, engine->update.rows * shape_rows(output)));
    const double mean = open_update_loss(&engine->update, labels);
    if (loss != NULL)
        *loss = mean;
    return RING_OK;
}

ring_status ring_train_own_loss(ring_train *engine, double loss, const float *gradient)
{
    RING_TRY(check_output(engine));
    if (gradient == NULL)
        return train_fail(RING_ERR_ARGUMENT, "ring_train_own_loss: gradient is NULL");
    open_update_own_loss(&engine->update, loss, gradient,
                         engine->loss_is_scaled ? (double)engine->trainer.config.accumulation
                                                : 1.0);
    return RING_OK;
}

static ring_status check_sync(const ring_train *engine)
{
    if (!engine->no_sync || engine->update.micro + 1 < engine->update.micro_batches)
        return RING_OK;
    return train_fail(RING_ERR_USAGE,
                      "backward: no gradient exchange would happen in update %ld: call "
                      "ring_train_no_sync(engine, 0) before its last micro-batch",
                      engine->trainer.step + 1);
}

ring_status ring_train_backward(ring_train *engine)
{
    RING_TRY(check_engine(engine));
    if (engine->update.phase != OPEN_HAS_LOSS)
        return train_fail(RING_ERR_USAGE, "backward: %s before it",
                          engine->update.phase == OPEN_HAS_OUTPUT
                              ? "ring_train_loss() or ring_train_own_loss() belongs"
                              : "ring_train_forward() and a loss belong");
    RING_TRY(check_sync(engine));
    engine->awaits_step = true;
    const ring_status status = handle_settle(engine, open_update_backward(&engine->update));
    engine->awaits_step = status == RING_OK;
    return status;
}

/* The samples of one that could not be loaded are the next one's. */
static void count_update(ring_train *engine, ring_status status, int micro_batches)
{
    engine->applied = status == RING_OK && !engine->result.skipped;
    if (engine->result.unloaded)
        return;
    engine->trainer.updates += !engine->owns_update;
    engine->trainer.micro_steps += micro_batches;
    engine->trainer.step += status == RING_OK;
}

ring_status ring_train_step(ring_train *engine)
{
    RING_TRY(check_engine(engine));
    if (!engine->awaits_step)
        return train_fail(RING_ERR_USAGE, "step: ring_train_backward() belongs before it");
    engine->awaits_step = false;
    if (!open_update_is_whole(&engine->update))
        return RING_OK;
    const ring_status status = open_update_finish(&engine->update, begin_rates(engine),
                                                  &engine->result);
    count_update(engine, status, engine->update.micro_batches);
    return handle_settle(engine, status);
}

ring_status ring_train_no_sync(ring_train *engine, int on)
{
    RING_TRY(check_engine(engine));
    RING_TRY(handle_check_no_stages(engine));
    if (on != 0 && engine->trainer.config.zero_stage >= 2)
        return train_fail(
            RING_ERR_USAGE,
            "ring_train_no_sync: in stage %ld ranks keep only the gradients that they "
            "own, and send the others after each micro-batch; use stage 0 or 1",
            engine->trainer.config.zero_stage);
    engine->no_sync = on != 0;
    return RING_OK;
}

ring_status ring_train_drop(ring_train *engine)
{
    RING_TRY(check_engine(engine));
    open_update_drop(&engine->update);
    engine->next.is_out = engine->awaits_step = false;
    return RING_OK;
}

/* ---- Whole updates ------------------------------------------------------------------------- */

ring_status ring_train_train_batch(ring_train *engine, double *loss)
{
    RING_TRY(check_data(engine));
    RING_TRY(handle_check_closed(engine, "ring_train_train_batch()"));
    if (engine->no_sync)
        return train_fail(RING_ERR_USAGE, "ring_train_train_batch: it is a whole update; end "
                                          "ring_train_no_sync() before it");
    if (progress_epoch_over(&engine->trainer))
        progress_begin_epoch(&engine->trainer, engine->trainer.epoch + 1);
    const engine_share share = progress_share(&engine->trainer);
    const ring_status status = engine_update_share(&engine->trainer.engine, &engine->trainer.train,
                                                   &share, begin_rates(engine), &engine->result);
    engine->owns_update = false;
    count_update(engine, status, share.micro_batches);
    if (loss != NULL)
        *loss = engine->result.loss;
    return handle_settle(engine, status);
}
