/* SPDX-License-Identifier: Apache-2.0
 * Implements the calls that score a network: evaluation on the test set, outputs without training,
 * means over the ranks, and access to the samples. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "errors.h"
#include "grid.h"
#include "train_handle.h"

static ring_status check_set(const train_dataset *dataset, const char *name)
{
    if (dataset->count > 0)
        return RING_OK;
    return train_fail(RING_ERR_USAGE,
                      "the engine has no %s data; set data or %s in the options of "
                      "ring_train_create()",
                      name, name);
}

ring_status ring_train_evaluate(ring_train *engine, double *loss, double *accuracy)
{
    engine_score score = {0};
    RING_TRY(handle_check_closed(engine, "ring_train_evaluate()"));
    RING_TRY(check_set(&engine->trainer.test, "test"));
    RING_TRY(handle_settle(engine, engine_evaluate(&engine->trainer.engine, &engine->trainer.test,
                                                   &score)));
    if (loss != NULL)
        *loss = score.loss;
    if (accuracy != NULL)
        *accuracy = score.accuracy;
    return RING_OK;
}

/* ---- Outputs ------------------------------------------------------------------------------- */

/* Runs as many passes as the rank with the most samples needs, since each pass is collective. A
 * rank that has no samples left runs passes of 0 rows. */
static ring_status predict(ring_train *engine, const float *inputs, size_t rows, float *outputs)
{
    const size_t most = engine->trainer.engine.evaluation_rows, features = engine->given.features;
    const size_t width = shape_count(&engine_network(&engine->trainer.engine)->output);
    uint64_t passes = (rows + most - 1) / most;
    ring_comm *comm = engine->trainer.comm;
    RING_TRY(
        train_ring(comm, ring_all_reduce(&passes, &passes, 1, RING_UINT64, RING_MAX, comm, NULL)));
    for (uint64_t p = 0; p < passes; p++) {
        const size_t done = (size_t)p * most, left = done < rows ? rows - done : 0;
        const size_t now = left < most ? left : most, begin = now > 0 ? done : 0;
        engine->given.inputs = inputs + begin * features;
        RING_TRY(engine_outputs(&engine->trainer.engine, &engine->batches, begin, now,
                                outputs + begin * width));
    }
    return offload_leave(&engine->trainer.engine.offload, &engine->trainer.config.offload, comm);
}

ring_status ring_train_predict(ring_train *engine, const float *inputs, size_t rows, float *outputs)
{
    static float nothing[1];
    RING_TRY(handle_check_closed(engine, "ring_train_predict()"));
    if (rows > 0 && (inputs == NULL || outputs == NULL))
        return train_fail(RING_ERR_ARGUMENT, "ring_train_predict: inputs or outputs is NULL");
    return handle_settle(engine, predict(engine, rows > 0 ? inputs : nothing, rows,
                                         rows > 0 ? outputs : nothing));
}

/* ---- Means --------------------------------------------------------------------------------- */

/* Fills this rank's summands: the weight, and each value times the weight. After an invalid
 * argument the weight is NaN, so that the sum becomes NaN on all ranks.
 * @param[out] sums  [1 + count], 0 on entry */
static void weigh(const double *values, size_t count, double weight, double *sums)
{
    const bool valid = isfinite(weight) && weight >= 0.0 && (values != NULL || count == 0);
    sums[0] = valid ? weight : (double)NAN;
    for (size_t i = 0; i < count && valid && weight > 0.0; i++)
        sums[1 + i] = weight * values[i];
}

static ring_status mean_of(ring_train *engine, double *values, size_t count, double *sums)
{
    RING_TRY(grid_sum(engine->trainer.comm, sums, count + 1));
    if (!(sums[0] > 0.0)) {
        train_fail(RING_ERR_ARGUMENT, "ring_train_mean: on some rank, weight is negative or not "
                                      "finite, or values is NULL; or weight is 0 on all ranks");
        train_error_share(); /* all ranks have the same sums */
        return RING_ERR_ARGUMENT;
    }
    for (size_t i = 0; i < count; i++)
        values[i] = sums[1 + i] / sums[0];
    return RING_OK;
}

ring_status ring_train_mean(ring_train *engine, double *values, size_t count, double weight)
{
    double *sums = NULL;
    size_t bytes;
    if (engine == NULL)
        return train_fail(RING_ERR_ARGUMENT, "ring_train_mean: the engine is NULL");
    if (__builtin_add_overflow(count, 1, &bytes) ||
        __builtin_mul_overflow(bytes, (size_t)ring_comm_size(engine->trainer.comm) * sizeof *sums,
                               &bytes))
        return train_fail(RING_ERR_ARGUMENT, "ring_train_mean: %zu values are too many", count);
    ring_status status = train_alloc((void **)&sums, bytes, "means");
    if (status == RING_OK) {
        weigh(values, count, weight, sums);
        status = mean_of(engine, values, count, sums);
    }
    free(sums);
    return handle_settle(engine, status);
}

/* ---- Samples ------------------------------------------------------------------------------- */

ring_status ring_train_samples(const ring_train *engine, ring_train_set set,
                               const uint32_t *samples, size_t rows, float *inputs,
                               uint32_t *labels)
{
    if (engine == NULL || (set != RING_TRAIN_SET_TRAIN && set != RING_TRAIN_SET_TEST) ||
        samples == NULL || labels == NULL)
        return train_fail(RING_ERR_ARGUMENT, "ring_train_samples: engine, samples or labels is "
                                             "NULL, or there is no such set");
    const bool test = set == RING_TRAIN_SET_TEST;
    const train_dataset *dataset = test ? &engine->trainer.test : &engine->trainer.train;
    RING_TRY(check_set(dataset, test ? "test" : "train"));
    for (size_t i = 0; i < rows; i++) {
        if (samples[i] >= dataset->count)
            return train_fail(RING_ERR_ARGUMENT,
                              "samples[%zu] is %u, but there %s only %zu sample%s", i, samples[i],
                              dataset->count == 1 ? "is" : "are", dataset->count,
                              plural(dataset->count));
    }
    return rows > 0 ? dataset_take(dataset, samples, rows, inputs, labels) : RING_OK;
}
