/* SPDX-License-Identifier: Apache-2.0
 * Computes a sum of squares for each data-parallel rank, adds these sums up over the pipeline
 * stages and over the tensor ranks, and then over the data-parallel ranks. */
#include "grad_norm.h"

#include <math.h>

#include "bucket_casts.h"
#include "errors.h"

/* @return the first tensor that another rank counts and that ends after @p begin, or NULL. */
static const train_tensor *next_left_out(const tensor_table *tensors, size_t begin)
{
    const train_tensor *next = NULL;
    for (int t = 0; t < tensors->count; t++) {
        const train_tensor *tensor = &tensors->list[t];
        if (tensor->counted_elsewhere && tensor->offset + tensor->count > begin &&
            (next == NULL || tensor->offset < next->offset))
            next = tensor;
    }
    return next;
}

/* @return the sum of squares of @p grads [count], which begin at offset @p begin of the flat
 * buffer, without the tensors that other ranks count. */
static double sum_counted(const train_model *model, const float *grads, size_t begin, size_t count)
{
    const tensor_table *tensors = &model->tensors;
    const size_t end = begin + count;
    double sum = 0.0;
    for (size_t at = begin; at < end;) {
        const train_tensor *next = next_left_out(tensors, at);
        const size_t stop = next != NULL && next->offset < end ? next->offset : end;
        if (stop > at)
            sum += model->place->sum_squares(model->place, grads + (at - begin), stop - at);
        at = stop < end ? next->offset + next->count : end;
    }
    return sum;
}

/* @return the sum of squares of the gradients that data-parallel rank @p rank owns. From stage 1 of
 * ZeRO on, @p rank must be this rank. */
static double sum_squares(const train_engine *engine, int rank)
{
    const zero_memory *memory = &engine->memory;
    const zero_array *kept = &memory->arrays[ZERO_GRADS];
    const size_t size = precision_size(kept->type);
    double sum = 0.0;
    for (int b = 0; b < engine->partition.count; b++) {
        const size_t part = engine->partition.buckets[b].part;
        const size_t begin = (size_t)rank * part, before = engine->zero_stage == 0 ? begin : 0;
        const unsigned char *owned = zero_owned(memory, kept, b);
        const float *grads = casts_float_grads(memory, b, owned + before * size, part);
        sum += sum_counted(&engine->model, grads,
                           engine->partition.buckets[b].at[LAYOUT_FULL] + begin, part);
    }
    return sum;
}

/* @param[out] sums  [data-parallel ranks] sum of squares of each rank's own gradients */
static ring_status sum_owners(const train_engine *engine, double *sums)
{
    if (engine->zero_stage > 0) {
        sums[engine->rank] = sum_squares(engine, engine->rank);
        return train_ring(engine->comm, ring_all_gather(&sums[engine->rank], sums, 1, RING_FLOAT64,
                                                        engine->comm, NULL));
    }
    for (int r = 0; r < engine->ranks; r++)
        sums[r] = sum_squares(engine, r);
    return RING_OK;
}

/* At another place than the host, a single rank has all gradients, and they are added up at once,
 * as by judge() of place_updates. */
static double sum_placed(const train_engine *engine)
{
    const nn_place *place = engine->model.place;
    const zero_array *grads = &engine->memory.arrays[ZERO_GRADS];
    return place->sum_squares(place, (const float *)(const void *)grads->data,
                              engine->partition.elements[grads->layout]);
}

ring_status grad_norm(const train_engine *engine)
{
    const size_t ranks = (size_t)engine->ranks;
    double *sums = engine->norm_sums, total = 0.0;
    if (!engine->model.place->is_host) {
        engine->scalars->grad_norm = sqrt(sum_placed(engine));
        return RING_OK;
    }
    ring_status status = sum_owners(engine, sums);
    if (status == RING_OK && engine->comms.pipe != NULL)
        status = grid_sum(engine->comms.pipe, sums, ranks);
    if (status == RING_OK && engine->comms.tensor != NULL)
        status = grid_sum(engine->comms.tensor, sums, ranks);
    for (size_t r = 0; r < ranks; r++)
        total += sums[r];
    engine->scalars->grad_norm = sqrt(total);
    return status;
}
