/* SPDX-License-Identifier: Apache-2.0
 * Implements the calls of a training loop: batches, forward, loss, backward and step, or whole
 * updates. Each call checks that the calls before it were in the right order. */
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

ring_status handle_check_closed(const ring_train *engine, const char *call)
{
    RING_TRY(check_engine(engine));
    if (engine->update.phase == OPEN_CLOSED && !engine->next.is_out)
        return RING_OK;
    return train_fail(RING_ERR_USAGE,
                      "%s is not possible within an update; first complete forward, loss, backward "
                      "and step of its %d micro-batches",
                      call, (int)engine->trainer.config.accumulation);
}

ring_status handle_check_no_stages(const ring_train *engine)
{
    RING_TRY(check_engine(engine));
    if (engine->trainer.grid.stages == 1)
        return RING_OK;
    return train_fail(RING_ERR_USAGE, "only ring_train_train_batch() is accessible in pipeline "
                                      "mode: the stages work on different micro-batches");
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

/* Sets the rates of the next update. A rate that the caller has set, or its schedule, applies to
 * all parameter groups. @return the learning rate. */
static double begin_rates(ring_train *engine)
{
    if (engine->lr < 0.0 && engine->schedule == NULL)
        return progress_set_rates(&engine->trainer, NULL);
    const double lr = handle_lr(engine, engine->trainer.engine.optimizer.step + 1);
    return progress_set_rates(&engine->trainer, &lr);
}

static ring_status check_data(const ring_train *engine)
{
    RING_TRY(check_engine(engine));
    if (engine->trainer.train.count > 0)
        return RING_OK;
    return train_fail(RING_ERR_USAGE, "the engine has no training data; set data or train in the "
                                      "options, or pass batches to ring_train_forward()");
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
        return train_fail(RING_ERR_USAGE,
                          "ring_train_next: the previous batch must first go through "
                          "ring_train_forward(), _backward() and _step()");
    if (engine->update.phase != OPEN_CLOSED && engine->owns_update)
        return train_fail(RING_ERR_USAGE, "ring_train_next: the update was begun with the caller's "
                                          "own batches; finish it with such batches");
    return RING_OK;
}

ring_status ring_train_next(ring_train *engine, ring_train_batch *batch, int *more)
{
    RING_TRY(check_next(engine));
    if (batch == NULL || more == NULL || batch->size != sizeof *batch)
        return train_fail(RING_ERR_ARGUMENT,
                          "ring_train_next: batch or more is NULL, or batch is not "
                          "initialized with RING_TRAIN_BATCH_INIT");
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
        return train_fail(RING_ERR_USAGE,
                          "forward: ring_train_step() must follow the last backward");
    if (has_output(engine))
        return train_fail(RING_ERR_USAGE,
                          "forward: the previous micro-batch still needs a loss and "
                          "ring_train_backward()");
    if (owns && engine->next.is_out)
        return train_fail(RING_ERR_USAGE, "forward: first pass the batch of ring_train_next()");
    if (!owns && !engine->next.is_out)
        return train_fail(RING_ERR_USAGE, "forward: this batch was already used or dropped; call "
                                          "ring_train_next() for another one");
    if (engine->update.phase != OPEN_CLOSED && engine->owns_update != owns)
        return train_fail(RING_ERR_USAGE,
                          "forward: the update was begun with %s; finish it with such batches",
                          engine->owns_update ? "the caller's own batches"
                                              : "batches of ring_train_next()");
    return RING_OK;
}

static ring_status check_batch(const ring_train *engine, const ring_train_batch *batch, bool owns)
{
    if (owns && (batch->inputs == NULL || batch->rows < 1 || batch->rows > engine->micro))
        return train_fail(
            RING_ERR_ARGUMENT,
            "forward: inputs is NULL, or the batch has %zu sample%s; a micro-batch of "
            "this rank has 1 to %zu",
            batch->rows, plural(batch->rows), engine->micro);
    if (!owns && batch->rows != engine->next.rows)
        return train_fail(RING_ERR_ARGUMENT,
                          "forward: the batch has %zu sample%s, but ring_train_next() returned %zu",
                          batch->rows, plural(batch->rows), engine->next.rows);
    return RING_OK;
}

/* Begins an update unless one is open. With the caller's own batches, every update has the
 * configured size, since their number is not known. */
static ring_status begin(ring_train *engine, bool owns)
{
    if (engine->update.phase != OPEN_CLOSED)
        return RING_OK;
    const engine_share whole = {.total = (size_t)engine->trainer.config.train_batch,
                                .micro_batches = (int)engine->trainer.config.accumulation};
    const engine_share share = owns ? whole : engine->share;
    engine->owns_update = owns;
    return open_update_begin(&engine->update, &engine->trainer.engine, &share);
}

/* @return numbers of the batch's samples, by which dropout is drawn: the caller's, or different
 * ones for all samples of all ranks in the order of arrival. */
static const uint32_t *sample_numbers(ring_train *engine, const ring_train_batch *batch)
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
        return train_fail(RING_ERR_ARGUMENT, "forward: batch is NULL, or not initialized with "
                                             "RING_TRAIN_BATCH_INIT");
    const bool owns = batch->inputs != engine->next.inputs || batch->inputs == NULL;
    const bool is_short = owns && batch->rows < engine->micro;
    RING_TRY(check_forward(engine, owns));
    RING_TRY(check_batch(engine, batch, owns));
    RING_TRY(handle_settle(engine, begin(engine, owns)));
    engine->given.inputs = batch->inputs;
    const update_samples samples = {.dataset = &engine->batches,
                                    .order = sample_numbers(engine, batch),
                                    .rows = batch->rows,
                                    .weight = is_short ? (double)engine->micro / (double)batch->rows
                                                       : 1.0};
    engine->next.is_out = false;
    RING_TRY(handle_settle(engine, open_update_forward(&engine->update, &samples)));
    return outputs == NULL ? RING_OK
                           : handle_settle(engine, engine_read_outputs(&engine->trainer.engine,
                                                                       batch->rows, outputs));
}

/* ---- Loss, backward, step ------------------------------------------------------------------ */

static ring_status check_output(const ring_train *engine)
{
    RING_TRY(check_engine(engine));
    if (has_output(engine))
        return RING_OK;
    return train_fail(RING_ERR_USAGE, "loss: call ring_train_forward() first");
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
    const nn_place *place = engine->trainer.engine.model.place;
    return handle_settle(engine, place->settle(place));
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

ring_status ring_train_backward(ring_train *engine)
{
    RING_TRY(check_engine(engine));
    if (engine->update.phase != OPEN_HAS_LOSS)
        return train_fail(RING_ERR_USAGE, "backward: call %s first",
                          engine->update.phase == OPEN_HAS_OUTPUT
                              ? "ring_train_loss() or ring_train_own_loss()"
                              : "ring_train_forward() and a function for the loss");
    if (engine->no_sync && engine->update.micro + 1 >= engine->update.micro_batches)
        return train_fail(RING_ERR_USAGE,
                          "backward: the gradients of update %ld would never be exchanged; call "
                          "ring_train_no_sync(engine, 0) before its last micro-batch",
                          engine->trainer.step + 1);
    engine->awaits_step = true;
    const ring_status status = handle_settle(engine, open_update_backward(&engine->update));
    engine->awaits_step = status == RING_OK;
    return status;
}

/* Counts an update. If a rank could not load its samples, the update is not counted, so that the
 * next one has the same samples. */
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
        return train_fail(RING_ERR_USAGE, "step: call ring_train_backward() first");
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
            "ring_train_no_sync: in stage %ld of ZeRO, gradients must be exchanged after each "
            "micro-batch; use stage 0 or 1",
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
        return train_fail(RING_ERR_USAGE,
                          "ring_train_train_batch: it must exchange gradients; call "
                          "ring_train_no_sync(engine, 0) first");
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
