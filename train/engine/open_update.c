/* SPDX-License-Identifier: Apache-2.0
 * Runs the list of an update in pieces and stops at each point where the caller continues. */
#include "open_update.h"

#include "errors.h"

/* @return the instruction after the last FORWARD of a micro-batch. */
static int end_of_forward(const update_schedule *schedule, int micro)
{
    int end = 0;
    for (int i = 0; i < schedule->count; i++) {
        const update_instruction *at = &schedule->list[i];
        if (at->kind == UPDATE_FORWARD && !at->recompute && at->micro == micro)
            end = i + 1;
    }
    return end;
}

ring_status open_update_begin(open_update *update, train_engine *engine, const engine_share *share)
{
    const update_schedule *schedule;
    *update = (open_update){0};
    RING_TRY(engine_schedule(engine, share->micro_batches, &schedule));
    update->batch = update_batch_of(engine, NULL, share);
    update->batch.loss_apart = true;
    update->batch.next = NULL; /* the samples of the next update are not known */
    update->machine = update_machine_start(engine, schedule, &update->batch);
    update->micro_batches = share->micro_batches;
    update->phase = OPEN_WAITS;
    return RING_OK;
}

/* Runs the instructions before @p end, and enters phase @p next unless they fail. */
static ring_status run_to(open_update *update, int end, open_phase next)
{
    const ring_status status = update_machine_run(&update->machine, end);
    update->phase = status == RING_OK ? next : OPEN_CLOSED;
    return status;
}

ring_status open_update_forward(open_update *update, const update_samples *samples)
{
    update_batch *batch = &update->batch;
    batch->dataset = samples->dataset;
    batch->order = samples->order;
    batch->samples = samples->rows;
    batch->micro = update->machine.engine->model.max_batch;
    batch->first = update->micro;
    update->rows = samples->rows;
    update->weight = samples->weight;
    return run_to(update, end_of_forward(update->machine.schedule, update->micro), OPEN_HAS_OUTPUT);
}

double open_update_loss(open_update *update, const uint32_t *labels)
{
    const double sum = update->rows == 0
                           ? 0.0
                           : update_fill_loss(update->machine.engine, &update->batch, 0, labels,
                                              update->rows, update->weight);
    update->loss = sum * update->weight;
    update->phase = OPEN_HAS_LOSS;
    return update->rows == 0 ? 0.0 : sum / (double)update->rows;
}

void open_update_own_loss(open_update *update, double loss, const float *gradient, double factor)
{
    const train_model *model = &update->machine.engine->model;
    const double samples = (double)update->rows * update->weight * factor;
    const float scale = (float)(samples * update->batch.scale);
    const size_t count = update->rows * shape_count(&model->output);
    const nn_place *place = model->place;
    float *output_grad = model_value_grad(model, 0, model->node_count - 1);
    /* The first half of placed.outputs may be the outputs that the caller has. */
    float *computed = place->is_host ? output_grad
                                     : update->machine.engine->placed.outputs +
                                           model->max_batch * shape_count(&model->output);
    for (size_t i = 0; i < count; i++)
        computed[i] = scale * gradient[i];
    if (!place->is_host)
        place->write(place, output_grad, computed, count * sizeof *computed);
    update->loss = loss * samples;
    update->phase = OPEN_HAS_LOSS;
}

ring_status open_update_backward(open_update *update)
{
    /* The passes of this micro-batch end at the LOAD of the next one, or at CLIP. */
    const update_instruction *list = update->machine.schedule->list;
    int end = update->machine.next;
    while (list[end].kind != UPDATE_LOAD && list[end].kind != UPDATE_CLIP)
        end++;
    update->batch.local_loss += update->loss;
    update->micro++;
    return run_to(update, end, OPEN_WAITS);
}

bool open_update_is_whole(const open_update *update)
{
    return update->phase == OPEN_WAITS && update->micro == update->micro_batches;
}

ring_status open_update_finish(open_update *update, double lr, engine_result *result)
{
    update->machine.engine->scalars->lr = lr;
    const ring_status status = run_to(update, update->machine.schedule->count, OPEN_CLOSED);
    *result = update->batch.result;
    return status;
}

void open_update_drop(open_update *update)
{
    if (update->phase == OPEN_CLOSED)
        return;
    update_machine_abandon(&update->machine);
    overflow_forget(&update->machine.engine->overflow);
    update->phase = OPEN_CLOSED;
}
