/* SPDX-License-Identifier: Apache-2.0
 * Provides an engine with its data: opens a folder or wraps the caller's callback, chooses this
 * rank's samples, and returns them in micro-batches. */
#include <string.h>

#include "agree.h"
#include "errors.h"
#include "train_handle.h"

enum { WORKERS_MAX = 256 };

/* ---- Opening ------------------------------------------------------------------------------- */

static ring_status find_loss(ring_train *engine, const char *name)
{
    engine->trainer.loss = LOSS_KINDS;
    for (int kind = 0; name != NULL && kind < LOSS_KINDS; kind++) {
        if (strcmp(name, loss_names[kind]) == 0)
            engine->trainer.loss = (loss_kind)kind;
    }
    if (name == NULL || engine->trainer.loss != LOSS_KINDS)
        return RING_OK;
    return train_fail(RING_ERR_ARGUMENT, "there is no loss %s; write mse or cross_entropy", name);
}

static ring_status read_norm(ring_train *engine, const ring_train_options *options)
{
    if (options->normalize == NULL)
        return RING_OK;
    if (options->data == NULL)
        return train_fail(RING_ERR_ARGUMENT, "normalize is only for images in data, a folder; the "
                                             "take callback must normalize its samples itself");
    if (pixel_norm_parse(options->normalize, &engine->trainer.norm))
        return RING_OK;
    return train_fail(
        RING_ERR_ARGUMENT,
        "normalize \"%.100s\": write a mean and a standard deviation above 0 for each "
        "channel, such as 0.1307/0.3081 or 0.5,0.5,0.5/0.5,0.5,0.5",
        options->normalize);
}

ring_status handle_choose_data(ring_train *engine, const ring_train_options *options)
{
    if (options->workers < 0 || options->workers > WORKERS_MAX)
        return train_fail(RING_ERR_ARGUMENT, "workers is %d, but must be 0 to %d threads",
                          options->workers, WORKERS_MAX);
    RING_TRY(find_loss(engine, options->loss));
    return read_norm(engine, options);
}

/* Opens the caller's samples. Without a configured loss, a text is trained with cross entropy and
 * everything else with the mean squared error. */
static ring_status open_own(ring_train *engine, const ring_train_options *options)
{
    const op_shape *input = &engine->trainer.spec.input;
    engine->trainer.spec.any_output = true;
    if (engine->trainer.loss == LOSS_KINDS)
        engine->trainer.loss = model_spec_words(&engine->trainer.spec) > 0 ? LOSS_CROSS_ENTROPY
                                                                           : LOSS_MSE;
    RING_TRY(user_data_open(&engine->train_given, &options->train, input, &engine->trainer.train));
    return user_data_open(&engine->test_given, &options->test, input, &engine->trainer.test);
}

/* Sets the size of this rank's micro-batches, and divides the training samples among the ranks. */
static ring_status divide(ring_train *engine)
{
    const train_config *config = &engine->trainer.config;
    const int share = engine->trainer.grid.share;
    engine->micro = (size_t)config->micro_batches.values[config->micro_batches.listed ? share : 0];
    if (engine->trainer.train.count == 0)
        return RING_OK;
    return trainer_divide(&engine->trainer);
}

ring_status handle_open_data(ring_train *engine, const ring_train_options *options)
{
    if (options->data != NULL)
        RING_TRY(trainer_read_data(&engine->trainer, options->data));
    RING_TRY(agree(engine->trainer.comm, options->data != NULL
                                             ? trainer_fit_data(&engine->trainer, options->data)
                                             : open_own(engine, options)));
    return agree(engine->trainer.comm, divide(engine));
}

/* ---- Micro-batches ------------------------------------------------------------------------- */

/* Allocates buffers for ring_train_next(). They have the same sizes as the reader's buffers,
 * because reader_take() swaps the two. */
static ring_status allocate_next(ring_train *engine)
{
    const train_model *model = &engine->trainer.engine.model;
    const size_t rows = model->max_batch;
    next_batch *next = &engine->next;
    RING_TRY(train_alloc((void **)&next->inputs, rows * shape_count(&model->input) * sizeof(float),
                         "a batch"));
    return train_alloc((void **)&next->labels,
                       rows * shape_rows(&model->output) * sizeof *next->labels, "a batch");
}

ring_status handle_make_batches(ring_train *engine)
{
    const op_shape *output = &engine_network(&engine->trainer.engine)->output;
    engine->train_given.output = engine->test_given.output = *output;
    engine->trainer.train.own_labels = engine->trainer.test.own_labels = shape_rows(output);
    engine->given.features = shape_count(&engine->trainer.spec.input);
    engine->batches = user_batch_open(&engine->given);
    RING_TRY(
        train_alloc((void **)&engine->numbers, engine->micro * sizeof *engine->numbers, "a batch"));
    return engine->trainer.train.count > 0 && engine->trainer.grid.stages == 1
               ? allocate_next(engine)
               : RING_OK;
}

/* Reads @p batch into engine->next, and asks the reader for @p following. */
static ring_status take(ring_train *engine, const data_batch *batch, const data_batch *following)
{
    next_batch *next = &engine->next;
    data_reader *reader = engine->trainer.engine.reader;
    if (reader == NULL)
        return dataset_take(batch->dataset, batch->order, batch->rows, next->inputs, next->labels);
    RING_TRY(reader_take(reader, batch, &next->inputs, &next->labels));
    if (following->rows > 0)
        reader_ask(reader, following);
    return RING_OK;
}

ring_status handle_take_next(ring_train *engine, ring_train_batch *batch)
{
    next_batch *next = &engine->next;
    const update_batch update = update_batch_of(&engine->trainer.engine, &engine->trainer.train,
                                                &engine->share);
    const data_batch at = update_micro_batch(&update, next->taken);
    const data_batch following = update_next_micro_batch(&update, next->taken);
    if (at.rows > 0)
        RING_TRY(take(engine, &at, &following));
    next->taken++;
    next->rows = at.rows;
    next->is_out = true;
    *batch = (ring_train_batch){.size = batch->size,
                                .rows = at.rows,
                                .inputs = next->inputs,
                                .labels = next->labels,
                                .samples = at.order};
    return RING_OK;
}
