/* SPDX-License-Identifier: Apache-2.0
 * Trains networks on a GPU, and compares losses, norms and scores with those of the host, runs with
 * each other, and what is refused. */
#include <cuda_place.h>

#include "check.h"
#include "drawn.h"
#include "engine_ranks.h"

#include <builtin.h>
#include <errors.h>
#include <fake_cuda_table.h>
#include <sampler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 330, UPDATES = 100 };

static train_dataset dataset;
static cuda_place gpu;

/* Results of a run. */
typedef struct trained {
    engine_rank on;
    size_t updates;
    const char *place;
    double losses[UPDATES], norms[UPDATES];
    engine_score score;
    uint64_t params_hash;
} trained;

static ring_status work(train_engine *engine, void *rank)
{
    trained *out = rank;
    const train_config *config = engine->config;
    const size_t window = (size_t)(config->micro_batch * config->accumulation);
    train_sampler sampler;
    ring_status status = RING_OK;
    out->place = engine->model.place->name;
    RING_TRY(sampler_create(&sampler, SAMPLES, 1, 0, &(sampler_rule){0}));
    sampler_set_epoch(&sampler, 0);
    for (size_t i = 0, at = 0; i < out->updates && status == RING_OK; i++) {
        engine_result result = {0};
        const size_t left = SAMPLES - at, samples = left < window ? left : window;
        status = engine_update(engine, &dataset, sampler.order + at, samples, config->optimizer.lr,
                               &result);
        at = left > window ? at + window : 0;
        out->losses[i] = result.loss;
        out->norms[i] = result.grad_norm;
    }
    sampler_destroy(&sampler);
    RING_TRY(status);
    RING_TRY(engine_evaluate(engine, &dataset, &out->score));
    RING_TRY(engine_check_params(engine));
    return engine_params_hash(engine, &out->params_hash);
}

static ring_status build_on_gpu(model_spec *spec, const char *model)
{
    RING_TRY(model_build(spec, model));
    spec->place = &gpu.place;
    return RING_OK;
}

/* Inserts a dropout before the last layer. */
static ring_status build_with_dropout(model_spec *spec, const char *model)
{
    RING_TRY(model_build(spec, "mlp"));
    const node_spec last = spec->nodes[spec->count - 1];
    spec->count--;
    assert_non_null(model_spec_add(spec, &op_dropout, &(op_settings){.probability = 0.25}));
    assert_non_null(model_spec_add(spec, last.op, &last.settings));
    return RING_OK;
}

static ring_status build_dropout_on_gpu(model_spec *spec, const char *model)
{
    RING_TRY(build_with_dropout(spec, model));
    spec->place = &gpu.place;
    return RING_OK;
}

typedef ring_status build_function(model_spec *spec, const char *model);

static void train(trained *out, build_function *build, const char *model, const char *config,
                  loss_kind loss, size_t updates)
{
    memset(out, 0, sizeof *out);
    out->updates = updates;
    engine_ranks_run(&(engine_job){.config = config,
                                   .model = model,
                                   .build = build,
                                   .loss = loss,
                                   .samples = 64,
                                   .work = work},
                     1, out, sizeof *out);
    engine_ranks_expect(1, out, sizeof *out, model);
}

static void check_same(const trained *got, const trained *want)
{
    assert_string_equal(got->place, "cuda:0");
    assert_string_equal(want->place, "cpu");
    for (size_t i = 0; i < want->updates; i++) {
        if (!(fabs(got->losses[i] - want->losses[i]) <= 1e-6 * fabs(want->losses[i]) + 1e-6))
            fail_msg("loss %zu is %.9g, not %.9g", i, got->losses[i], want->losses[i]);
        assert_near(got->norms[i], want->norms[i], 1e-3, 1e-4 * want->norms[0]);
    }
    assert_near(got->score.loss, want->score.loss, 1e-5, 1e-6);
    assert_near(got->score.accuracy, want->score.accuracy, 0, 1.5 / SAMPLES);
}

#define OPTIMIZER(name, params) \
    "{train_batch_size: 64, optimizer: {type: \"" name "\", params: {" params "}}}"

#define LENET_CONFIG "{train_batch_size: 24, optimizer: {type: \"Adam\", params: {lr: 0.001}}}"

static void losses_equal_the_hosts(void **state)
{
    static const struct {
        const char *model, *config;
        loss_kind loss;
        size_t updates;
    } runs[] = {
        {"mlp", OPTIMIZER("Adam", "lr: 0.001"), LOSS_CROSS_ENTROPY, UPDATES},
        {"mlp", OPTIMIZER("SGD", "lr: 0.05"), LOSS_MSE, 12},
        {"mlp",
         "{train_batch_size: 63, gradient_accumulation_steps: 3, gradient_clipping: 0.5, "
         "optimizer: {type: \"SGD\", params: {lr: 0.01, momentum: 0.9, nesterov: true, "
         "weight_decay: 1e-3}}}",
         LOSS_CROSS_ENTROPY, 12},
        {"mlp", OPTIMIZER("Lion", "lr: 1e-5, weight_decay: 0.1"), LOSS_CROSS_ENTROPY, 12},
        {"mlp", OPTIMIZER("Adagrad", "lr: 0.001"), LOSS_CROSS_ENTROPY, 12},
        {"lenet5", LENET_CONFIG, LOSS_CROSS_ENTROPY, 12},
    };
    static trained host, device;
    for (size_t r = 0; r < COUNT_OF(runs); r++) {
        const size_t updates = getenv("RING_TEST_LONG") != NULL ? UPDATES : runs[r].updates;
        train(&host, NULL, runs[r].model, runs[r].config, runs[r].loss, updates);
        train(&device, build_on_gpu, runs[r].model, runs[r].config, runs[r].loss, updates);
        check_same(&device, &host);
    }
    train(&host, build_with_dropout, "mlp", runs[0].config, LOSS_CROSS_ENTROPY, 12);
    train(&device, build_dropout_on_gpu, "mlp", runs[0].config, LOSS_CROSS_ENTROPY, 12);
    check_same(&device, &host);
}

static void two_runs_have_the_same_bits(void **state)
{
    static trained runs[2];
    for (int r = 0; r < 2; r++)
        train(&runs[r], build_on_gpu, "lenet5", LENET_CONFIG, LOSS_CROSS_ENTROPY, 6);
    assert_memory_equal(runs[0].losses, runs[1].losses, runs[0].updates * sizeof(double));
    assert_memory_equal(runs[0].norms, runs[1].norms, runs[0].updates * sizeof(double));
    assert_true(runs[0].params_hash == runs[1].params_hash);
}

static void expect_refusal(const char *model, int ranks, const char *config, const char *error)
{
    static trained runs[2];
    memset(runs, 0, sizeof runs);
    engine_ranks_run(&(engine_job){.config = config,
                                   .model = model,
                                   .build = build_on_gpu,
                                   .loss = LOSS_CROSS_ENTROPY,
                                   .samples = 64,
                                   .work = work},
                     ranks, runs, sizeof *runs);
    assert_int_equal(runs[0].on.status, RING_ERR_UNSUPPORTED);
    if (strstr(runs[0].on.error, error) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", error, runs[0].on.error);
}

static void what_gpus_cannot_do_is_refused(void **state)
{
    expect_refusal("mlp", 2, OPTIMIZER("Adam", "lr: 0.001"), "needs a single rank");
    expect_refusal("mlp", 2,
                   "{train_batch_size: 64, pipeline: {stages: 2}, optimizer: {type: \"SGD\", "
                   "params: {lr: 0.1}}}",
                   "needs a single rank");
    expect_refusal("mlp", 1,
                   "{train_batch_size: 64, bf16: {enabled: true}, optimizer: {type: \"SGD\", "
                   "params: {lr: 0.1}}}",
                   "needs float32");
    expect_refusal("gpt", 1, OPTIMIZER("SGD", "lr: 0.1"), "cuda:0 cannot compute this layer");
}

/* Random images with a bright bar at a place that tells the label, as digits can be told apart: a
 * network that learns noise by heart amplifies the last bits of every sum. */
static void draw_dataset(void)
{
    drawn_fill(&dataset, SAMPLES);
    for (size_t i = 0; i < SAMPLES; i++)
        for (size_t p = 0; p < DRAWN_PIXELS; p++) {
            uint8_t *pixel = &dataset.images.data[i * DRAWN_PIXELS + p];
            *pixel = p / 28 / 2 == dataset.labels.data[i] ? 255 : *pixel / 8;
        }
}

/* Requests report nothing, so each failure must reach settle(), with the call and the request. */
static void a_failed_request_is_told_by_settle(void **state)
{
    static const char *const calls[] = {"cuCtxSetCurrent", "cuMemsetD8Async", "cuLaunchKernel"};
    if (dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fake_cuda_fail") == NULL)
        skip_because("only the driver's double fails on demand");
    const fake_cuda_table fake = fake_cuda_functions();
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        cuda_place other;
        void *memory;
        assert_int_equal(cuda_place_open(&other, 0, false), RING_OK);
        assert_int_equal(other.place.alloc(&other.place, &memory, 64, "a test"), RING_OK);
        (fake.fail)(calls[i], 700);
        other.place.clear(&other.place, memory, 64);
        other.place.add(&other.place, memory, memory, 16);
        (fake.fail)(calls[i], 0);
        assert_int_not_equal(other.place.settle(&other.place), RING_OK);
        if (strstr(train_error(), calls[i]) == NULL)
            fail_msg("no %s in \"%s\"", calls[i], train_error());
        other.place.release(&other.place, memory);
        cuda_place_close(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_equal_the_hosts),
        cmocka_unit_test(two_runs_have_the_same_bits),
        cmocka_unit_test(what_gpus_cannot_do_is_refused),
        cmocka_unit_test(a_failed_request_is_told_by_settle),
    };
    if (cuda_place_open(&gpu, 0, false) != RING_OK) {
        fprintf(stderr, "%s\n", train_error());
        return 1;
    }
    draw_dataset();
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    dataset_free(&dataset);
    cuda_place_close(&gpu);
    return failures;
}
