/* SPDX-License-Identifier: Apache-2.0
 * Flushing subnormals is a mode of one thread: an update computes in it, and restores the old one.
 */
#include "check.h"
#include "parsing.h"

#include <builtin.h>
#include <errors.h>
#include <gemm.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <subnormals.h>
#include <train_engine.h>

enum { SAMPLES = 16, PIXELS = 784, UPDATES = 3 };

#if defined(__x86_64__) || defined(__aarch64__)
static const bool has_mode = true;
#else
static const bool has_mode = false;
#endif

/* Results and operands: 1e-38 is normal, its tenth is not. */
static bool results_are_flushed(void)
{
    volatile float least = 2e-38F, tenth = 0.1F;
    return least * tenth == 0.0F;
}

static bool operands_are_flushed(void)
{
    volatile float tiny = 1e-40F, large = 1e20F;
    return tiny * large == 0.0F;
}

static void the_mode_is_entered_and_left(void **state)
{
    assert_false(results_are_flushed() || operands_are_flushed());
    const uint64_t outside = subnormals_flush();
    assert_int_equal(results_are_flushed(), has_mode);
    assert_int_equal(operands_are_flushed(), has_mode);
    const uint64_t inside = subnormals_flush();
    subnormals_restore(inside);
    assert_int_equal(results_are_flushed(), has_mode);
    subnormals_restore(outside);
    assert_false(results_are_flushed() || operands_are_flushed());
}

static void *look(void *flushed)
{
    *(bool *)flushed = results_are_flushed();
    return NULL;
}

static void threads_of_the_maths_library_do_not_change_the_callers(void **state)
{
    pthread_t thread;
    bool flushed = true;
    gemm_set_threads(3);
    assert_false(results_are_flushed());
    assert_int_equal(pthread_create(&thread, NULL, look, &flushed), 0);
    pthread_join(thread, NULL);
    assert_false(flushed);
    gemm_set_threads(1);
}

/* ---- Updates ------------------------------------------------------------------------------- */

/* Images whose upper half is never lit, so that the gradients of its weights are zero. */
static void make_dataset(train_dataset *dataset)
{
    *dataset = (train_dataset){.count = SAMPLES, .features = PIXELS, .classes = DATASET_CLASSES};
    dataset->images.data = calloc(SAMPLES, PIXELS);
    dataset->labels.data = calloc(SAMPLES, 1);
    assert_true(dataset->images.data != NULL && dataset->labels.data != NULL);
    for (uint32_t i = 0; i < SAMPLES * PIXELS; i++) {
        if (i % PIXELS >= PIXELS / 2)
            dataset->images.data[i] = (uint8_t)(i * 2654435761U >> 24);
    }
    for (size_t i = 0; i < SAMPLES; i++)
        dataset->labels.data[i] = (uint8_t)(i % DATASET_CLASSES);
}

static size_t count_subnormals(const float *values, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += fpclassify(values[i]) == FP_SUBNORMAL;
    return found;
}

/* Starts with moments that are about to become subnormal, as they are after some epochs. */
static void train(train_engine *engine, const train_dataset *dataset)
{
    uint32_t order[SAMPLES];
    engine_result result;
    for (uint32_t i = 0; i < SAMPLES; i++)
        order[i] = i;
    for (size_t i = 0; i < engine->optimizer.count; i++)
        engine->optimizer.first[i] = engine->optimizer.second[i] = 1.18e-38F;
    for (int update = 0; update < UPDATES; update++)
        assert_int_equal(engine_update(engine, dataset, order, SAMPLES, 1e-3, &result), RING_OK);
}

static void an_update_leaves_no_subnormal_moment_and_the_mode_as_it_was(void **state)
{
    train_dataset dataset;
    train_engine engine;
    model_spec spec;
    ring_unique_id id;
    ring_comm *comm;
    parsed got = parse("{train_batch_size: 16, optimizer: {type: \"Adam\", params: {lr: 1e-3}}}");
    assert_int_equal(config_resolve_batch(&got.config, 1, "", BATCH_EXACT), RING_OK);
    make_dataset(&dataset);
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    assert_int_equal(ring_comm_init(&comm, 1, &id, 0), RING_OK);
    assert_int_equal(model_build(&spec, "mlp"), RING_OK);
    assert_int_equal(engine_create(&engine, comm, &got.config, LOSS_CROSS_ENTROPY, &spec, SAMPLES,
                                   1),
                     RING_OK);
    train(&engine, &dataset);
    if (has_mode) {
        assert_int_equal(count_subnormals(engine.optimizer.first, engine.optimizer.count), 0);
        assert_int_equal(count_subnormals(engine.optimizer.second, engine.optimizer.count), 0);
    }
    assert_false(results_are_flushed() || operands_are_flushed());
    engine_destroy(&engine);
    model_spec_free(&spec);
    ring_comm_destroy(comm);
    dataset_free(&dataset);
}

int main(void)
{
    gemm_set_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mode_is_entered_and_left),
        cmocka_unit_test(threads_of_the_maths_library_do_not_change_the_callers),
        cmocka_unit_test(an_update_leaves_no_subnormal_moment_and_the_mode_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
