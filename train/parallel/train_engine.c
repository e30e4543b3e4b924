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
    /* One micro-batch is in flight. */
    SLOT = 0,
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
    const tensor_table *tensors = &engine->model.tensors;
    size_t *counts;
    RING_TRY(train_alloc((void **)&counts, (size_t)tensors->own_count * sizeof *counts,
                         "the gradients' sizes"));
    for (int i = 0; i < tensors->count; i++)
        counts[tensors->list[i].own] = tensors->list[i].count;
    const ring_status status = ring_buckets_create(&engine->buckets, engine->grads, counts,
                                                   (size_t)tensors->own_count, RING_FLOAT32,
                                                   RING_SUM, BUCKET_BYTES, engine->comm);
    free(counts);
    return check_ring(engine, status);
}

static ring_status create_memory(train_engine *engine)
{
    train_model *model = &engine->model;
    const size_t bytes = model->tensors.elements * sizeof(float);
    const size_t images = model->max_batch * shape_count(&model->input) * sizeof(float);
    RING_TRY(shared_memory(engine, (void **)&engine->params, bytes));
    RING_TRY(shared_memory(engine, (void **)&engine->grads, bytes));
    RING_TRY(shared_memory(engine, (void **)&engine->loss_total, sizeof(double)));
    RING_TRY(train_alloc((void **)&engine->images, images, "a batch"));
    RING_TRY(train_alloc((void **)&engine->labels, model->max_batch, "a batch"));
    model_bind(model, engine->params, engine->grads);
    return create_buckets(engine);
}

static ring_status create_local(train_engine *engine, const model_spec *spec, size_t samples_max)
{
    const size_t micro = (size_t)engine->config->micro_batch;
    const size_t most = micro < samples_max ? micro : samples_max;
    const size_t batch = most > EVALUATION_BATCH ? most : EVALUATION_BATCH;
    RING_TRY(model_create(&engine->model, spec, batch, 1));
    RING_TRY(optimizer_create(&engine->optimizer, &engine->config->optimizer,
                              engine->model.tensors.elements));
    return create_memory(engine);
}

ring_status engine_create(train_engine *engine, ring_comm *comm, const train_config *config,
                          loss_kind loss, const model_spec *spec, size_t samples_max, uint64_t seed)
{
    *engine = (train_engine){.comm = comm,
                             .config = config,
                             .loss = loss,
                             .seed = seed,
                             .ranks = ring_comm_size(comm),
                             .rank = ring_comm_rank(comm)};
    RING_TRY(agree(comm, create_local(engine, spec, samples_max)));
    if (engine->rank == 0)
        model_init(&engine->model, seed);
    return check_ring(engine,
                      ring_broadcast(engine->params, engine->params, engine->model.tensors.elements,
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

static ring_status reduce_gradient(void *context, int tensor)
{
    const train_engine *engine = context;
    const size_t own = (size_t)engine->model.tensors.list[tensor].own;
    return check_ring(engine, ring_buckets_ready(engine->buckets, own));
}

static size_t classes_of(const train_engine *engine)
{
    return shape_count(&engine->model.output);
}

/* Takes the samples, and leaves the model's output in the slot. */
static ring_status forward(train_engine *engine, const train_dataset *dataset,
                           const uint32_t *order, size_t batch, bool training)
{
    train_model *model = &engine->model;
    dataset_take(dataset, order, batch, engine->images, engine->labels);
    const op_random random = {.seed = engine->seed,
                              .step = (uint32_t)engine->optimizer.step,
                              .samples = order};
    RING_TRY(model_load(model, SLOT,
                        &(model_batch){.input = engine->images,
                                       .rows = batch,
                                       .training = training,
                                       .random = random}));
    return model_forward(model, SLOT, 0, model->node_count, NULL);
}

/* @return the sum of the batch's losses; the model is ready for backward. */
static double compute_loss(train_engine *engine, size_t batch, double scale)
{
    const train_model *model = &engine->model;
    return loss_sum(engine->loss, model_output(model, SLOT), engine->labels, batch,
                    classes_of(engine), scale, model_delta(model, SLOT, model->node_count - 1));
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
    const size_t count = engine->model.tensors.elements;
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
    const model_hooks reduce = {.gradient_ready = reduce_gradient, .context = engine};
    double local_loss = 0.0;
    ring_work *loss_work = NULL;
    result->samples = samples * (size_t)engine->ranks;
    for (size_t taken = 0; taken < samples; taken += micro) {
        const bool last = taken + micro >= samples;
        const size_t batch = last ? samples - taken : micro;
        RING_TRY(forward(engine, dataset, order + taken, batch, true));
        local_loss += compute_loss(engine, batch, 1.0 / (double)result->samples);
        if (last) {
            *engine->loss_total = local_loss;
            RING_TRY(reduce_loss(engine, &loss_work));
        }
        RING_TRY(model_backward(&engine->model, SLOT, 0, engine->model.node_count, taken > 0,
                                last ? &reduce : NULL));
    }
    RING_TRY(check_ring(engine, ring_buckets_wait(engine->buckets)));
    RING_TRY(check_ring(engine, ring_wait(&loss_work)));
    return finish_update(engine, local_loss, lr, result);
}

/* A float64 holds any sum of squares of finite float32. */
static ring_status find_not_finite(const train_engine *engine)
{
    const tensor_table *tensors = &engine->model.tensors;
    for (int i = 0; i < tensors->count; i++) {
        const train_tensor *tensor = &tensors->list[i];
        if (!isfinite(optimizer_norm(engine->params + tensor->offset, tensor->count)))
            return train_fail(RING_ERR_USAGE,
                              "parameter %s is not finite after update %ld; " ADVICE, tensor->name,
                              engine->optimizer.step);
    }
    return RING_OK;
}

ring_status engine_check_params(train_engine *engine)
{
    return agree(engine->comm, find_not_finite(engine));
}

/* Adds the hits among samples @p begin to below @p end to @p correct. */
static ring_status count_correct(train_engine *engine, const train_dataset *dataset, size_t begin,
                                 size_t end, uint64_t *correct)
{
    uint32_t order[EVALUATION_BATCH];
    while (begin < end) {
        const size_t left = end - begin;
        const size_t batch = left < EVALUATION_BATCH ? left : EVALUATION_BATCH;
        for (size_t i = 0; i < batch; i++)
            order[i] = (uint32_t)(begin + i);
        RING_TRY(forward(engine, dataset, order, batch, false));
        *correct += loss_correct(model_output(&engine->model, SLOT), engine->labels, batch,
                                 classes_of(engine));
        begin += batch;
    }
    return RING_OK;
}

ring_status engine_accuracy(train_engine *engine, const train_dataset *dataset, double *accuracy)
{
    const size_t ranks = (size_t)engine->ranks, rank = (size_t)engine->rank;
    const size_t begin = dataset->count * rank / ranks;
    const size_t end = dataset->count * (rank + 1) / ranks;
    uint64_t correct = 0;
    RING_TRY(agree(engine->comm, count_correct(engine, dataset, begin, end, &correct)));
    RING_TRY(check_ring(engine, ring_all_reduce(&correct, &correct, 1, RING_UINT64, RING_SUM,
                                                engine->comm, NULL)));
    *accuracy = (double)correct / (double)dataset->count;
    return RING_OK;
}
