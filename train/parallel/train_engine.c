/* SPDX-License-Identifier: Apache-2.0
 * An update: take a micro-batch, forward, backward while finished gradients are reduced,
 * wait, clip, step. */
#include "train_engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "errors.h"

#define ADVICE "lower the learning rate or set gradient_clipping"

enum {
    /* Small, so that the last layers' gradients travel during the first layer's backward. */
    BUCKET_BYTES = 64 << 10,
    /* Rows of one forward pass where no micro-batch asks for another number. */
    EVALUATION_BATCH = 256,
};

static ring_status check_ring(const train_engine *engine, ring_status status)
{
    return train_ring(engine->comm, status);
}

static ring_status shared_memory(const train_engine *engine, void **memory, size_t bytes)
{
    return check_ring(engine, ring_mem_alloc(memory, bytes));
}

static ring_status create_buckets(train_engine *engine)
{
    model_tensor tensors[2 * MODEL_LAYERS_MAX];
    size_t counts[2 * MODEL_LAYERS_MAX];
    const size_t tensor_count = model_tensors(&engine->model, tensors);
    for (size_t i = 0; i < tensor_count; i++)
        counts[i] = tensors[i].count;
    return check_ring(engine,
                      ring_buckets_create(&engine->buckets, engine->grads, counts, tensor_count,
                                          RING_FLOAT32, RING_SUM, BUCKET_BYTES, engine->comm));
}

static ring_status create_memory(train_engine *engine)
{
    train_model *model = &engine->model;
    const size_t bytes = model->param_count * sizeof(float);
    const size_t images = model->max_batch * model->layers[0].in * sizeof(float);
    RING_TRY(shared_memory(engine, (void **)&engine->params, bytes));
    RING_TRY(shared_memory(engine, (void **)&engine->grads, bytes));
    RING_TRY(shared_memory(engine, (void **)&engine->loss_total, sizeof(double)));
    RING_TRY(train_alloc((void **)&engine->images, images, "a batch"));
    RING_TRY(train_alloc((void **)&engine->labels, model->max_batch, "a batch"));
    model_bind(model, engine->params, engine->grads);
    return create_buckets(engine);
}

static ring_status create_local(train_engine *engine, const size_t *widths, int layer_count,
                                size_t samples_max)
{
    const size_t micro = (size_t)engine->config->micro_batch;
    const size_t most = micro < samples_max ? micro : samples_max;
    const size_t batch = most > EVALUATION_BATCH ? most : EVALUATION_BATCH;
    RING_TRY(model_create(&engine->model, widths, layer_count, batch));
    RING_TRY(optimizer_create(&engine->optimizer, &engine->config->optimizer,
                              engine->model.param_count));
    return create_memory(engine);
}

ring_status engine_create(train_engine *engine, ring_comm *comm, const train_config *config,
                          loss_kind loss, const size_t *widths, int layer_count, size_t samples_max,
                          uint64_t seed)
{
    *engine = (train_engine){.comm = comm,
                             .config = config,
                             .loss = loss,
                             .ranks = ring_comm_size(comm),
                             .rank = ring_comm_rank(comm)};
    RING_TRY(agree(comm, create_local(engine, widths, layer_count, samples_max)));
    if (engine->rank == 0)
        model_init(&engine->model, seed);
    return check_ring(engine,
                      ring_broadcast(engine->params, engine->params, engine->model.param_count,
                                     RING_FLOAT32, 0, comm, NULL));
}

void engine_destroy(train_engine *engine)
{
    ring_buckets_destroy(engine->buckets);
    ring_mem_free(engine->params);
    ring_mem_free(engine->grads);
    ring_mem_free(engine->loss_total);
    free(engine->images);
    free(engine->labels);
    optimizer_destroy(&engine->optimizer);
    model_destroy(&engine->model);
    *engine = (train_engine){0};
}

/* Tensors 2l and 2l + 1 are layer l's weight and bias. */
static ring_status layer_ready(void *context, int layer)
{
    const train_engine *engine = context;
    const size_t weight = 2 * (size_t)layer;
    RING_TRY(check_ring(engine, ring_buckets_ready(engine->buckets, weight + 1)));
    return check_ring(engine, ring_buckets_ready(engine->buckets, weight));
}

/* @return the sum of the batch's losses; the model is ready for backward. */
static double forward(train_engine *engine, const train_dataset *dataset, const uint32_t *order,
                      size_t batch, double scale)
{
    train_model *model = &engine->model;
    const model_layer *last = &model->layers[model->layer_count - 1];
    dataset_take(dataset, order, batch, engine->images, engine->labels);
    const float *output = model_forward(model, engine->images, batch);
    return loss_sum(engine->loss, output, engine->labels, batch, last->out, scale, last->delta);
}

static ring_status reduce_loss(train_engine *engine, ring_work **work)
{
    ring_call call = RING_CALL_INIT;
    call.work = work;
    return check_ring(engine, ring_all_reduce(engine->loss_total, engine->loss_total, 1,
                                              RING_FLOAT64, RING_SUM, engine->comm, &call));
}

/* The sum over ranks is finite only if every rank's is; then nobody needs to ask. */
static ring_status check_finite(train_engine *engine, double local_loss, double norm)
{
    if (isfinite(*engine->loss_total) && isfinite(norm))
        return RING_OK;
    const long update = engine->optimizer.step + 1;
    ring_status mine = RING_OK;
    if (!isfinite(local_loss))
        mine = train_fail(RING_ERR_USAGE, "the loss is %s in update %ld; " ADVICE,
                          isnan(local_loss) ? "nan" : "infinite", update);
    RING_TRY(agree(engine->comm, mine));
    return agree(engine->comm,
                 train_fail(RING_ERR_USAGE, "the gradient is not finite in update %ld; " ADVICE,
                            update));
}

static ring_status finish_update(train_engine *engine, double local_loss, double lr,
                                 engine_result *result)
{
    const size_t count = engine->model.param_count;
    result->loss = *engine->loss_total / (double)result->samples;
    result->grad_norm = optimizer_norm(engine->grads, count);
    RING_TRY(check_finite(engine, local_loss, result->grad_norm));
    optimizer_step(&engine->optimizer, engine->params, engine->grads, lr,
                   optimizer_clip(result->grad_norm, engine->config->gradient_clipping));
    return RING_OK;
}

ring_status engine_update(train_engine *engine, const train_dataset *dataset, const uint32_t *order,
                          size_t samples, double lr, engine_result *result)
{
    const size_t micro = (size_t)engine->config->micro_batch;
    double local_loss = 0.0;
    ring_work *loss_work = NULL;
    result->samples = samples * (size_t)engine->ranks;
    for (size_t taken = 0; taken < samples; taken += micro) {
        const bool last = taken + micro >= samples;
        const size_t batch = last ? samples - taken : micro;
        local_loss += forward(engine, dataset, order + taken, batch, 1.0 / (double)result->samples);
        if (last) {
            *engine->loss_total = local_loss;
            RING_TRY(reduce_loss(engine, &loss_work));
        }
        RING_TRY(model_backward(&engine->model, taken > 0, last ? layer_ready : NULL, engine));
    }
    RING_TRY(check_ring(engine, ring_buckets_wait(engine->buckets)));
    RING_TRY(check_ring(engine, ring_wait(&loss_work)));
    return finish_update(engine, local_loss, lr, result);
}

/* A float64 holds any sum of squares of finite float32. */
static ring_status find_not_finite(const train_engine *engine)
{
    model_tensor tensors[2 * MODEL_LAYERS_MAX];
    const size_t count = model_tensors(&engine->model, tensors);
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(optimizer_norm(engine->params + tensors[i].offset, tensors[i].count)))
            return train_fail(RING_ERR_USAGE,
                              "parameter %s is not finite after update %ld; " ADVICE,
                              tensors[i].name, engine->optimizer.step);
    }
    return RING_OK;
}

ring_status engine_check_params(train_engine *engine)
{
    return agree(engine->comm, find_not_finite(engine));
}

static size_t count_correct(train_engine *engine, const train_dataset *dataset, size_t begin,
                            size_t end)
{
    uint32_t order[EVALUATION_BATCH];
    const model_layer *last = &engine->model.layers[engine->model.layer_count - 1];
    size_t correct = 0;
    while (begin < end) {
        const size_t left = end - begin;
        const size_t batch = left < EVALUATION_BATCH ? left : EVALUATION_BATCH;
        for (size_t i = 0; i < batch; i++)
            order[i] = (uint32_t)(begin + i);
        dataset_take(dataset, order, batch, engine->images, engine->labels);
        const float *output = model_forward(&engine->model, engine->images, batch);
        correct += loss_correct(output, engine->labels, batch, last->out);
        begin += batch;
    }
    return correct;
}

ring_status engine_accuracy(train_engine *engine, const train_dataset *dataset, double *accuracy)
{
    const size_t ranks = (size_t)engine->ranks, rank = (size_t)engine->rank;
    const size_t begin = dataset->count * rank / ranks;
    const size_t end = dataset->count * (rank + 1) / ranks;
    uint64_t correct = count_correct(engine, dataset, begin, end);
    RING_TRY(check_ring(engine, ring_all_reduce(&correct, &correct, 1, RING_UINT64, RING_SUM,
                                                engine->comm, NULL)));
    *accuracy = (double)correct / (double)dataset->count;
    return RING_OK;
}
