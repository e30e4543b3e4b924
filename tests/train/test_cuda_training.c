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

/* How updates are run, and results of a run. */
typedef struct trained {
    engine_rank on;
    size_t updates;
    bool keeps;     /* the samples are kept on the GPU */
    bool late;      /* results are collected when the place has computed them, or must be */
    bool waits;     /* each request is computed at once */
    size_t counted; /* the calls of the driver are counted from this update on */
    fake_cuda_census calls;
    const char *place;
    double losses[UPDATES], norms[UPDATES];
    engine_score score;
    uint64_t params_hash;
    size_t collected;
} trained;

static bool has_double;
static fake_cuda_table fake;

/* Without cuStreamQuery(), by which the host asks a GPU that has not ended an update for 10 ms
 * whether it has failed: the double's updates take that long. */
static fake_cuda_census end_census(void)
{
    static fake_cuda_census_row rows[64];
    const int count = (fake.census_end)(rows, COUNT_OF(rows));
    fake_cuda_census sum = (fake.census_sum)(rows, count, false, 0);
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].function, "cuStreamQuery") == 0)
            sum.calls -= rows[i].calls;
    return sum;
}

/* Collects the results of all but @p most updates, and those that have been computed. */
static ring_status collect(train_engine *engine, trained *out, size_t submitted, size_t most)
{
    bool found = true;
    while (found && out->collected < submitted) {
        engine_result result;
        RING_TRY(engine_collect(engine, submitted - out->collected > most, &result, &found));
        if (!found)
            break;
        out->losses[out->collected] = result.loss;
        out->norms[out->collected++] = result.grad_norm;
    }
    return RING_OK;
}

static ring_status update(train_engine *engine, trained *out, size_t i, const uint32_t *order,
                          size_t samples)
{
    const size_t micro = (size_t)engine->config->micro_batch;
    const engine_share share = {.order = order,
                                .samples = samples,
                                .micro = micro,
                                .total = samples,
                                .micro_batches = (int)((samples + micro - 1) / micro)};
    const double lr = engine->config->optimizer.lr / (1 + (double)(i % 3));
    engine_result result = {0};
    if (out->late) {
        RING_TRY(engine_submit(engine, &dataset, &share, lr));
        return collect(engine, out, i + 1, ENGINE_AWAITED_MAX - 1);
    }
    RING_TRY(engine_update_share(engine, &dataset, &share, lr, &result));
    out->losses[i] = result.loss;
    out->norms[i] = result.grad_norm;
    return RING_OK;
}

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
    if (out->keeps)
        RING_TRY(engine_keep_samples(engine, &dataset));
    engine->waits = out->waits;
    for (size_t i = 0, at = 0; i < out->updates && status == RING_OK; i++) {
        const size_t left = SAMPLES - at, samples = left < window ? left : window;
        if (out->counted > 0 && i == out->counted)
            (fake.census_begin)();
        status = update(engine, out, i, sampler.order + at, samples);
        at = left > window ? at + window : 0;
    }
    if (status == RING_OK && out->late)
        status = collect(engine, out, out->updates, 0);
    if (out->counted > 0)
        out->calls = end_census();
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

/* @param how  its settings of updates; NULL: each result is waited for */
static void train_as(const trained *how, trained *out, build_function *build, const char *model,
                     const char *config, loss_kind loss, size_t updates)
{
    memset(out, 0, sizeof *out);
    if (how != NULL)
        *out = *how;
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

static void train(trained *out, build_function *build, const char *model, const char *config,
                  loss_kind loss, size_t updates)
{
    train_as(NULL, out, build, model, config, loss, updates);
}

static void expect_same_bits(const trained *got, const trained *want)
{
    assert_memory_equal(got->losses, want->losses, want->updates * sizeof(double));
    assert_memory_equal(got->norms, want->norms, want->updates * sizeof(double));
    assert_true(got->params_hash == want->params_hash);
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
    expect_same_bits(&runs[1], &runs[0]);
}

/* Three convolutions, each with other sizes of its columns. */
static ring_status build_convolutions(model_spec *spec, const char *model)
{
    static const op_settings windows[] = {{.outputs = 2, .kernel = 3, .stride = 1},
                                          {.outputs = 4, .kernel = 3, .stride = 1},
                                          {.outputs = 4, .kernel = 3, .stride = 3}};
    (void)model;
    model_spec_start(spec, "convolutions", (op_shape){.dim = {1, 28, 28}, .dims = 3});
    for (size_t i = 0; i < COUNT_OF(windows); i++) {
        assert_non_null(model_spec_add(spec, &op_conv2d, &windows[i]));
        assert_non_null(model_spec_add(spec, &op_relu, &(op_settings){0}));
    }
    assert_non_null(model_spec_add(spec, &op_flatten, &(op_settings){0}));
    assert_non_null(model_spec_add(spec, &op_linear, &(op_settings){.outputs = 10}));
    spec->place = &gpu.place;
    return RING_OK;
}

#define SMALL_BATCHES \
    "{train_batch_size: 30, gradient_accumulation_steps: 2, gradient_clipping: 0.8, optimizer: " \
    "{type: \"AdamW\", params: {lr: 0.002}}}"

/* Request by request, update by update, in graphs of several updates, from samples on the GPU or on
 * the host: each kind of graph is launched several times. */
static void graphs_have_the_bits_of_their_requests(void **state)
{
    static const trained ways[] = {{.keeps = true}, {.late = true}, {.keeps = true, .late = true}};
    static trained want, got;
    train_as(&(trained){.waits = true}, &want, build_dropout_on_gpu, "mlp", SMALL_BATCHES,
             LOSS_CROSS_ENTROPY, 40);
    for (size_t w = 0; w < COUNT_OF(ways); w++) {
        train_as(&ways[w], &got, build_dropout_on_gpu, "mlp", SMALL_BATCHES, LOSS_CROSS_ENTROPY,
                 40);
        expect_same_bits(&got, &want);
    }
    build_function *const nets[] = {build_on_gpu, build_convolutions};
    for (size_t n = 0; n < COUNT_OF(nets); n++) {
        train_as(&(trained){.waits = true}, &want, nets[n], "lenet5", LENET_CONFIG,
                 LOSS_CROSS_ENTROPY, 20);
        train_as(&ways[2], &got, nets[n], "lenet5", LENET_CONFIG, LOSS_CROSS_ENTROPY, 20);
        expect_same_bits(&got, &want);
    }
}

/* Prints the longest chain of kernels in an update.
 * @return their number. @param[out] products  of them */
static int print_chain(const char *model, int *products)
{
    enum { AT_ONCE = 8, MOST = 64 };
    const char *names[MOST];
    const int count = (fake.longest_chain)(names, MOST) / AT_ONCE;
    *products = 0;
    printf("%s:", model);
    for (int i = 0; i < count && i < MOST; i++) {
        printf(" %s", names[i]);
        *products += strcmp(names[i], "fake_product") == 0;
    }
    printf(": %d kernels, %d of them products\n", count, *products);
    return count;
}

/* Of 330 samples, an epoch has 10 updates of 33: the calls of the last 24 updates are counted. */
static void an_update_of_a_graph_is_at_most_one_call(void **state)
{
    static const struct {
        const char *model;
        int nodes, products;
    } nets[] = {{"mlp", 13, 6}, {"lenet5", 30, 10}};
    static trained run;
    if (!has_double)
        skip_because("only the driver's double counts calls");
    for (size_t n = 0; n < COUNT_OF(nets); n++) {
        int products;
        train_as(&(trained){.keeps = true, .late = true, .counted = 16}, &run, build_on_gpu,
                 nets[n].model, "{train_batch_size: 33, optimizer: {type: \"Adam\", params: {}}}",
                 LOSS_CROSS_ENTROPY, 40);
        printf("%s: %lu calls for 24 updates\n", nets[n].model, (unsigned long)run.calls.calls);
        assert_true(run.calls.calls <= 24);
        assert_true(run.calls.synchronisations == 0);
        assert_true(print_chain(nets[n].model, &products) <= nets[n].nodes);
        assert_true(products <= nets[n].products);
    }
}

/* The sixth update has 10 samples and is the first of that size, so it is executed request by
 * request. Forward and backward passes, the samples, the loss, the norm and the step count as ops.
 */
static void an_update_by_requests_makes_few_calls(void **state)
{
    static const struct {
        const char *model;
        int ops;
    } nets[] = {{"mlp", 2 * 5 + 4}, {"lenet5", 2 * 12 + 4}};
    static trained run;
    if (!has_double)
        skip_because("only the driver's double counts calls");
    for (size_t n = 0; n < COUNT_OF(nets); n++) {
        train_as(&(trained){.keeps = true, .late = true, .counted = 5}, &run, build_on_gpu,
                 nets[n].model, OPTIMIZER("Adam", ""), LOSS_CROSS_ENTROPY, 6);
        printf("%s: %lu calls for %d ops\n", nets[n].model, (unsigned long)run.calls.calls,
               nets[n].ops);
        assert_true(run.calls.calls <= 3 * (uint64_t)nets[n].ops);
        assert_true(run.calls.synchronisations == 0);
    }
}

/* The GPU skips an update whose loss is not finite, and all that follow. */
static void a_loss_that_is_not_finite_is_reported_late(void **state)
{
    static const char config[] = "{train_batch_size: 33, optimizer: {type: \"SGD\", params: {lr: "
                                 "1e18}}}";
    static trained host, device;
    memset(&host, 0, sizeof host);
    memset(&device, 0, sizeof device);
    host.updates = device.updates = 30;
    device.keeps = device.late = true;
    const engine_job on_host = {
        .config = config, .model = "mlp", .loss = LOSS_CROSS_ENTROPY, .samples = 64, .work = work};
    engine_job on_gpu = on_host;
    on_gpu.build = build_on_gpu;
    engine_ranks_run(&on_host, 1, &host, sizeof host);
    engine_ranks_run(&on_gpu, 1, &device, sizeof device);
    assert_int_equal(host.on.status, RING_ERR_USAGE);
    assert_int_equal(device.on.status, host.on.status);
    assert_string_equal(device.on.error, host.on.error);
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
    if (!has_double)
        skip_because("only the driver's double fails on demand");
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
        cmocka_unit_test(graphs_have_the_bits_of_their_requests),
        cmocka_unit_test(an_update_of_a_graph_is_at_most_one_call),
        cmocka_unit_test(an_update_by_requests_makes_few_calls),
        cmocka_unit_test(a_loss_that_is_not_finite_is_reported_late),
        cmocka_unit_test(what_gpus_cannot_do_is_refused),
        cmocka_unit_test(a_failed_request_is_told_by_settle),
    };
    if (cuda_place_open(&gpu, 0, false) != RING_OK) {
        fprintf(stderr, "%s\n", train_error());
        return 1;
    }
    has_double = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fake_cuda_fail") != NULL;
    if (has_double)
        fake = fake_cuda_functions();
    draw_dataset();
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    dataset_free(&dataset);
    cuda_place_close(&gpu);
    return failures;
}
