/* SPDX-License-Identifier: Apache-2.0
 * Requests the passes of an update's schedule, and matches outcomes with the updates that are
 * awaited, in their order. */
#include "deferred_update.h"

#include <kernels.h>
#include <math.h>
#include <string.h>

#include "update_run.h"

/* ---- Samples --------------------------------------------------------------------------------- */

/* Computes the number of each byte of a channel, as dataset_take() does.
 * @param[out] values [channels, BYTE_VALUES] */
static void fill_values(const train_dataset *dataset, size_t channels, float *values)
{
    uint8_t bytes[BYTE_VALUES];
    for (int b = 0; b < BYTE_VALUES; b++)
        bytes[b] = (uint8_t)b;
    for (size_t c = 0; c < channels; c++, values += BYTE_VALUES)
        if (dataset->norm != NULL)
            memcpy(values, dataset->norm->values[dataset->norm->channels == 1 ? 0 : c],
                   sizeof bytes * sizeof *values);
        else
            kernel_bytes_to_unit(values, bytes, BYTE_VALUES);
}

/* Prepares the place. Without memory for records, updates are not deferred. */
static ring_status open_updates(train_engine *engine)
{
    const train_model *model = &engine->model;
    const train_dataset *kept = engine->deferred.kept;
    const optimizer_run *runs = engine->optimizer.runs;
    float values[NORM_CHANNELS_MAX][BYTE_VALUES];
    kept_samples samples = {.values = values[0]};
    const update_plan plan = {.steps = runs != NULL ? (size_t)engine->optimizer.run_count : 1,
                              .samples = (size_t)(engine->config->accumulation *
                                                  engine->config->micro_batch),
                              .features = shape_count(&model->input),
                              .overlaps = model->interval == 0,
                              .inputs = engine->placed.images,
                              .labels = engine->placed.labels,
                              .numbers = engine->placed.samples};
    if (kept != NULL) {
        samples.bytes = kept->images.data;
        samples.labels = kept->labels.data;
        samples.count = kept->count;
        samples.channels = kept->norm != NULL ? kept->channels : 1;
        fill_values(kept, samples.channels, values[0]);
    }
    ring_status status = model->place->updates->open(model->place, &plan,
                                                     kept != NULL ? &samples : NULL);
    const ring_status settled = model->place->settle(model->place); /* values has been read */
    status = status == RING_OK ? settled : status;
    engine->deferred.opened = status == RING_OK;
    if (status != RING_OK)
        model->place->updates->close(model->place);
    engine->waits |= status == RING_ERR_MEMORY;
    return status == RING_ERR_MEMORY ? RING_OK : status;
}

static bool runs(const train_engine *engine, const train_dataset *dataset)
{
    const deferred_updates *deferred = &engine->deferred;
    return engine->model.place->updates != NULL && !engine->waits && dataset->token_bytes == 0 &&
           shape_rows(&engine->model.output) == 1 &&
           zero_is_same(&engine->memory, ZERO_NODE_GRADS, ZERO_GRADS) &&
           (deferred->kept == NULL || deferred->kept == dataset);
}

ring_status deferred_prepare(train_engine *engine, const train_dataset *dataset, bool *defers)
{
    if (runs(engine, dataset) && !engine->deferred.opened)
        RING_TRY(open_updates(engine));
    *defers = runs(engine, dataset);
    return RING_OK;
}

/* Writes the samples of the update, or only their numbers, to its record. */
static ring_status fill_record(train_engine *engine, const update_batch *batch)
{
    const nn_place *place = engine->model.place;
    const size_t features = shape_count(&engine->model.input);
    const update_record record = place->updates->record(place);
    memcpy(record.samples, batch->order, batch->samples * sizeof *batch->order);
    if (record.inputs == NULL)
        return RING_OK;
    if (engine->reader == NULL)
        return dataset_take(batch->dataset, batch->order, batch->samples, record.inputs,
                            record.labels);
    for (size_t at = 0; at < batch->samples; at += batch->micro) {
        const int micro = (int)(at / batch->micro);
        const data_batch want = update_micro_batch(batch, micro),
                         next = update_next_micro_batch(batch, micro);
        RING_TRY(reader_take(engine->reader, &want, &engine->images[0], &engine->labels));
        if (next.rows > 0)
            reader_ask(engine->reader, &next);
        memcpy(record.labels + at, engine->labels, want.rows * sizeof *record.labels);
        memcpy(record.inputs + at * features, engine->images[0],
               want.rows * features * sizeof *record.inputs);
    }
    return RING_OK;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void load(train_engine *engine, const update_batch *batch, const update_instruction *at)
{
    const nn_place *place = engine->model.place;
    const size_t rows = update_micro_batch(batch, at->micro).rows;
    place->updates->take(place, (size_t)at->micro * batch->micro, rows);
    (void)model_load(&engine->model, at->slot,
                     &(model_batch){.input = engine->placed.images,
                                    .rows = rows,
                                    .training = true,
                                    .random = {.seed = engine->seed,
                                               .samples = engine->placed.samples}});
}

static void forward(train_engine *engine, const update_batch *batch, const update_instruction *at)
{
    const train_model *model = &engine->model;
    const loss_run run = {.kind = engine->loss,
                          .outputs = model_output(model, at->slot),
                          .labels = engine->placed.labels,
                          .rows = update_micro_batch(batch, at->micro).rows,
                          .classes = shape_width(&model->output),
                          .scale = batch->scale,
                          .gradient = model_value_grad(model, at->slot, model->node_count - 1)};
    model_forward(&engine->model, at->slot, at->first, at->end);
    if (at->end == model->node_count)
        model->place->loss(model->place, &run);
}

static const float *array_of(const train_engine *engine, zero_role role)
{
    return (const float *)(const void *)zero_array_of(&engine->memory, role)->data;
}

/* Requests everything but the steps of the optimiser. A single rank has the sums of gradients
 * already, and its update has no calls. */
static void request_passes(train_engine *engine, const update_schedule *schedule,
                           const update_batch *batch)
{
    const nn_place *place = engine->model.place;
    for (int i = 0; i < schedule->count; i++) {
        const update_instruction *at = &schedule->list[i];
        if (at->kind == UPDATE_LOAD)
            load(engine, batch, at);
        else if (at->kind == UPDATE_FORWARD)
            forward(engine, batch, at);
        else if (at->kind == UPDATE_BACKWARD)
            model_backward(&engine->model, at->slot, at->first, at->end, at->accumulate);
    }
    place->updates->judge(place, array_of(engine, ZERO_GRADS),
                          engine->partition.elements[LAYOUT_FULL],
                          engine->config->gradient_clipping);
}

static void add_awaited(train_engine *engine, const engine_share *share)
{
    deferred_updates *d = &engine->deferred;
    d->awaited[(d->first + d->count++) % PLACE_UPDATES_MAX] =
        (awaited_update){.number = engine->optimizer.step,
                         .samples = share->total,
                         .stop_asked = engine->stop_asked};
}

ring_status deferred_submit(train_engine *engine, const update_schedule *schedule,
                            const train_dataset *dataset, const engine_share *share, double lr)
{
    const place_updates *updates = engine->model.place->updates;
    const nn_place *place = engine->model.place;
    const double clip = 1.0; /* that of the place is a further factor */
    const optimizer_range all = {.count = engine->partition.elements[LAYOUT_FULL],
                                 .params = (float *)(uintptr_t)array_of(engine, ZERO_MASTERS),
                                 .grads = array_of(engine, ZERO_GRADS)};
    const update_key key = {.micro_batches = (uint64_t)share->micro_batches,
                            .micro = share->micro,
                            .samples = share->samples,
                            .total = share->total};
    const update_batch batch = update_batch_of(engine, dataset, share);
    const ring_status filled = fill_record(engine, &batch);
    engine->deferred.unloaded = filled != RING_OK;
    RING_TRY(filled);
    const bool requests = updates->begin(place, &key, (uint32_t)engine->optimizer.step);
    optimizer_begin(&engine->optimizer);
    do {
        if (requests)
            request_passes(engine, schedule, &batch);
        optimizer_step(&engine->optimizer, &all, &lr, &clip);
    } while (!updates->end(place));
    add_awaited(engine, share);
    return RING_OK;
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

/* Fails because of an update that the place has skipped, with all later ones. */
static ring_status fail_skipped(train_engine *engine, const awaited_update *update, double loss)
{
    const nn_place *place = engine->model.place;
    update_outcome later;
    bool found = true;
    while (found)
        RING_TRY(place->updates->next(place, true, &later, &found));
    place->updates->resume(place);
    engine->deferred.count = 0;
    engine->optimizer.step = update->number - 1;
    return update_fail_not_finite(loss, update->number);
}

ring_status deferred_collect(train_engine *engine, bool wait, engine_result *result, bool *found)
{
    const nn_place *place = engine->model.place;
    deferred_updates *d = &engine->deferred;
    update_outcome outcome;
    *found = false;
    if (d->count == 0)
        return RING_OK;
    RING_TRY(place->updates->next(place, wait, &outcome, found));
    if (!*found)
        return RING_OK;
    const awaited_update update = d->awaited[d->first];
    d->first = (d->first + 1) % PLACE_UPDATES_MAX;
    d->count--;
    *result = (engine_result){.loss = outcome.loss / (double)update.samples,
                              .grad_norm = sqrt(outcome.squares),
                              .samples = update.samples,
                              .stop_asked = update.stop_asked};
    return outcome.skipped ? fail_skipped(engine, &update, outcome.loss) : RING_OK;
}
