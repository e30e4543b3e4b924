/* SPDX-License-Identifier: Apache-2.0
 * Pipelines as threads: the same bits as without, for all numbers of stages and micro-batches, over
 * a grid too, and each rank holds its stage alone. */
#include "check.h"
#include "drawn.h"
#include "engine_ranks.h"

#include <bucket_casts.h>
#include <builtin.h>
#include <errors.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last of a rank's micro-batches is short, and so is the last batch of an evaluation; of two
 * shares one has one batch more. */
enum { STORED = 513, SAMPLES = 45, UPDATES = 4, RANKS_MAX = 6 };

#define BF16 "bf16: {enabled: true}"
#define BF16_FLOAT_WIRE "bf16: {enabled: true}, communication_data_type: \"fp32\""

static train_dataset dataset;

static int draw_dataset(void **state)
{
    drawn_fill(&dataset, STORED);
    return 0;
}

static int free_dataset(void **state)
{
    dataset_free(&dataset);
    return 0;
}

/* A run, and what one rank of it saw. */
typedef struct pipe_run {
    engine_rank on;
    const char *model;
    int shares, stages, micros, zero, interval;
    const char *precision; /* keys of the configuration; NULL: float32 */
    float grown;           /* factor of the first layer and divisor of the second */
    double losses[UPDATES], norms[UPDATES], accuracy;
    uint64_t params_hash, shared_hash;
    size_t state_bytes;
    long skipped;
    char where[OVERFLOW_TEXT_MAX]; /* the last one that overflowed */
} pipe_run;

/* A residual connection, dropout and layers without parameters on both sides of the cuts. */
static ring_status build_mixed(model_spec *spec)
{
    const op_settings window = {.outputs = 3, .kernel = 3, .stride = 1, .padding = 1};
    model_spec_start(spec, "mixed", (op_shape){.dim = {1, 28, 28}, .dims = 3});
    model_spec_add(spec, &op_avg_pool2d, &(op_settings){.kernel = 4, .stride = 4});
    model_spec_add(spec, &op_conv2d, &window);
    model_spec_add(spec, &op_conv2d, &window);
    model_spec_add(spec, &op_add, NULL)->inputs[1] = 1;
    model_spec_add(spec, &op_tanh, NULL);
    model_spec_add(spec, &op_flatten, NULL);
    model_spec_add(spec, &op_dropout, &(op_settings){.probability = 0.25});
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 30});
    model_spec_add(spec, &op_relu, NULL);
    model_spec_add(spec, &op_dropout, &(op_settings){.probability = 0.25});
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 20});
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 10});
    return RING_OK;
}

/* Each of two or three stages has two of the layers that share. */
static ring_status build_tied(model_spec *spec)
{
    const op_settings wide = {.outputs = 51};
    model_spec_start(spec, "tied", (op_shape){.dim = {DRAWN_PIXELS}, .dims = 1});
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 51});
    for (int n = 1; n <= 6; n++) {
        model_spec_add(spec, &op_linear, &wide)->tie = n == 1 ? NOT_TIED : 1;
        model_spec_add(spec, &op_tanh, NULL);
    }
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 10});
    return RING_OK;
}

/* Widths of which no activation is a whole number of cache lines. */
static ring_status build(model_spec *spec, const char *name)
{
    static const size_t widths[] = {DRAWN_PIXELS, 129, 131, 127, 10};
    if (strcmp(name, "mixed") == 0)
        return build_mixed(spec);
    if (strcmp(name, "tied") == 0)
        return build_tied(spec);
    if (strcmp(name, "deep") == 0)
        return model_build_mlp(spec, name, widths, COUNT_OF(widths) - 1);
    return model_build(spec, name);
}

/* Clipping at 1e3 clips nothing: a norm of float64 sums has other last bits where buckets are other
 * ones. */
static void configure(const pipe_run *run, char text[512])
{
    snprintf(text, 512,
             "{train_micro_batch_size_per_gpu: %d, gradient_accumulation_steps: %d, "
             "gradient_clipping: 1e3, optimizer: {type: \"Adam\"}, zero_optimization: {stage: %d}, "
             "pipeline: {stages: %d, partition: \"%s\", "
             "activation_checkpoint_interval: %d}%s%s}",
             (SAMPLES + run->micros - 1) / run->micros, run->micros, run->zero, run->stages,
             strcmp(run->model, "tied") == 0 ? "uniform" : "parameters", run->interval,
             run->precision != NULL ? ", " : "", run->precision != NULL ? run->precision : "");
}

static ring_status run_updates(pipe_run *run, train_engine *engine)
{
    uint32_t order[SAMPLES];
    for (int u = 0; u < UPDATES; u++) {
        engine_result result = {0};
        for (int i = 0; i < SAMPLES; i++)
            order[i] = (uint32_t)((u * SAMPLES + i) * run->shares + engine->rank) % STORED;
        RING_TRY(engine_update(engine, &dataset, order, SAMPLES, 0.01, &result));
        run->losses[u] = result.loss;
        run->norms[u] = result.grad_norm;
    }
    const char *where = strstr(engine->overflow.lines[1], "tensor");
    run->skipped = engine->overflow.skipped;
    snprintf(run->where, sizeof run->where, "%s", where != NULL ? where : "");
    RING_TRY(engine_check_params(engine));
    engine_score score;
    RING_TRY(engine_evaluate(engine, &dataset, &score));
    run->accuracy = score.accuracy;
    return RING_OK;
}

static ring_status hash_params(pipe_run *run, train_engine *engine)
{
    RING_TRY(engine_params_hash(engine, &run->params_hash));
    if (engine->pipeline.ties.count > 0) {
        const zero_array *kept = zero_array_of(&engine->memory, ZERO_PARAMS);
        const pipe_tie *tie = &engine->pipeline.ties.list[0];
        const size_t size = precision_size(kept->type);
        run->shared_hash = fnv1a(kept->data + tie->offset * size, tie->count * size);
    }
    run->state_bytes = engine_state_bytes(engine);
    return RING_OK;
}

static void scale_tensor(const train_engine *engine, const char *name, float by)
{
    float *masters = (float *)(void *)zero_array_of(&engine->memory, ZERO_MASTERS)->data;
    for (int t = 0; t < engine->model.tensors.count; t++) {
        const train_tensor *tensor = &engine->model.tensors.list[t];
        for (size_t i = 0; i < tensor->count && strcmp(tensor->name, name) == 0; i++)
            masters[tensor->offset + i] *= by;
    }
}

/* Of a network of ReLUs: the output stays as it is, and of all gradients that of the second
 * layer's weights alone grows. */
static void grow_inputs_of_the_second(const train_engine *engine, float by)
{
    scale_tensor(engine, "0.weight", by);
    scale_tensor(engine, "0.bias", by);
    scale_tensor(engine, "2.weight", 1 / by);
    for (int b = 0; b < engine->partition.count; b++)
        casts_end_step(&engine->memory, b, 0, zero_owned_count(&engine->memory, b));
}

static ring_status work(train_engine *engine, void *rank)
{
    pipe_run *run = rank;
    if (run->grown > 0)
        grow_inputs_of_the_second(engine, run->grown);
    RING_TRY(run_updates(run, engine));
    return hash_params(run, engine);
}

/* Runs @p base on its ranks, into @p runs. Fails unless all have the same. */
static void train(const pipe_run *base, pipe_run *runs)
{
    char text[512], what[64];
    const int ranks = base->shares * base->stages;
    configure(base, text);
    snprintf(what, sizeof what, "%s, %d stages", base->model, base->stages);
    runs[0] = *base;
    engine_ranks_run(&(engine_job){.config = text,
                                   .model = base->model,
                                   .build = build,
                                   .loss = LOSS_CROSS_ENTROPY,
                                   .samples = SAMPLES,
                                   .algorithm = "ring",
                                   .work = work},
                     ranks, runs, sizeof *runs);
    engine_ranks_expect(ranks, runs, sizeof *runs, what);
    for (int r = 0; r < ranks; r++) {
        assert_int_equal(runs[r].params_hash, runs[0].params_hash);
        assert_memory_equal(runs[r].losses, runs[0].losses, sizeof runs[0].losses);
        assert_memory_equal(runs[r].norms, runs[0].norms, sizeof runs[0].norms);
        assert_true(runs[r].accuracy == runs[0].accuracy);
        assert_int_equal(runs[r].skipped, runs[0].skipped);
        assert_string_equal(runs[r].where, runs[0].where);
    }
}

static void expect_same(const pipe_run *got, const pipe_run *want)
{
    if (got->params_hash != want->params_hash)
        fail_msg("%s, %d shares, %d stages, %d micro-batches, ZeRO %d: other parameters",
                 got->model, got->shares, got->stages, got->micros, got->zero);
    assert_memory_equal(got->losses, want->losses, sizeof got->losses);
    for (int u = 0; u < UPDATES; u++)
        if (isfinite(want->norms[u]))
            assert_near(got->norms[u], want->norms[u], 1e-12, 0);
        else
            assert_false(isfinite(got->norms[u]));
    assert_true(got->accuracy == want->accuracy);
}

static void stages_compute_the_same_bit_for_bit(void **state)
{
    static const char *const models[] = {"deep", "lenet5", "mixed"};
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        for (int micros = 1; micros <= 8; micros++) {
            pipe_run alone[1], runs[RANKS_MAX];
            train(&(pipe_run){.model = models[m], .shares = 1, .stages = 1, .micros = micros},
                  alone);
            assert_true(alone->losses[UPDATES - 1] != alone->losses[0]);
            for (int stages = 2; stages <= 4; stages += 2) {
                train(&(pipe_run){.model = models[m],
                                  .shares = 1,
                                  .stages = stages,
                                  .micros = micros},
                      runs);
                expect_same(&runs[0], alone);
            }
        }
    }
}

static void computing_activations_again_changes_no_bit(void **state)
{
    static const char *const models[] = {"deep", "lenet5", "mixed"};
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        pipe_run kept[1], runs[RANKS_MAX];
        pipe_run run = {.model = models[m], .shares = 1, .stages = 1, .micros = 3};
        train(&run, kept);
        for (run.interval = 1; run.interval <= 4; run.interval++) {
            for (run.stages = 1; run.stages <= 2; run.stages++) {
                train(&run, runs);
                expect_same(&runs[0], kept);
            }
        }
    }
}

/* Seven layers, each an activation and its gradient: of 16 and at last 10 numbers a sample. With an
 * interval of 3 the third, sixth and seventh are kept, and there is room for two more. */
static void activations_that_are_kept_are_few(void **state)
{
    static const struct {
        int interval;
        size_t kept, turns;
    } cases[] = {{0, 6, 0}, {1, 6, 0}, {2, 3, 1}, {3, 2, 2}, {4, 1, 3}, {7, 0, 6}, {9, 0, 6}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        model_spec spec;
        train_model model;
        model_spec_start(&spec, "m", (op_shape){.dim = {16}, .dims = 1});
        for (int n = 0; n < 7; n++)
            model_spec_add(&spec, &op_linear, &(op_settings){.outputs = n < 6 ? 16 : 10});
        spec.interval = cases[c].interval;
        assert_int_equal(model_create(&model, &spec, 32, 3), RING_OK);
        const size_t sample = sizeof(float) * 2 * 32;
        assert_int_equal(model_activation_bytes(&model),
                         sample * (3 * (16 * cases[c].kept + 10) + 16 * cases[c].turns));
        model_destroy(&model);
        model_spec_free(&spec);
    }
}

/* Two ranks add two numbers: in any order the same. */
static void grids_compute_the_same_bit_for_bit(void **state)
{
    static const char *const models[] = {"deep", "mixed"};
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        for (int micros = 1; micros <= 4; micros += 3) {
            for (int zero = 0; zero <= 1; zero++) {
                pipe_run data[RANKS_MAX], grid[RANKS_MAX];
                pipe_run run = {
                    .model = models[m], .shares = 2, .stages = 1, .micros = micros, .zero = zero};
                train(&run, data);
                run.stages = 2;
                train(&run, grid);
                expect_same(&grid[0], &data[0]);
            }
        }
    }
}

/* The scale begins so high that gradients of all stages overflow, and comes down until those of one
 * do; all stages skip the same updates, and name the same tensor. */
static void sixteen_bits_are_the_same_too(void **state)
{
    static const char *const precisions[] = {
        "fp16: {enabled: true, initial_scale_power: 21, hysteresis: 1}",
        BF16,
        BF16_FLOAT_WIRE,
        "communication_data_type: \"fp16\"",
    };
    for (size_t p = 0; p < COUNT_OF(precisions); p++) {
        for (int shares = 1; shares <= 2; shares++) {
            pipe_run want[RANKS_MAX], got[RANKS_MAX];
            pipe_run run = {.model = "deep",
                            .shares = shares,
                            .stages = 1,
                            .micros = 3,
                            .zero = shares - 1,
                            .precision = precisions[p]};
            train(&run, want);
            if (p == 0)
                assert_in_range(want->skipped, 1, UPDATES - 1);
            for (run.stages = 2; run.stages <= 4 / shares; run.stages++) {
                train(&run, got);
                expect_same(&got[0], &want[0]);
                assert_int_equal(got->skipped, want->skipped);
                assert_string_equal(got->where, want->where);
            }
        }
    }
}

/* Four stages of a layer each. The same scale overflows nowhere while the second stage's gradient
 * is not grown; when it is, all leave the updates out and name its tensor. */
static void an_overflow_on_a_middle_stage_is_one_on_all(void **state)
{
    static const char precision[] = "fp16: {enabled: true, initial_scale_power: 15, hysteresis: 1}";
    pipe_run alone[1], runs[RANKS_MAX];
    pipe_run run = {.model = "deep", .shares = 1, .stages = 4, .micros = 3, .precision = precision};
    train(&run, runs);
    assert_int_equal(runs->skipped, 0);
    run.grown = 16384;
    train(&run, runs);
    assert_int_equal(runs->skipped, UPDATES);
    assert_non_null(strstr(runs->where, "tensor 2.weight "));
    run.stages = 1;
    train(&run, alone);
    expect_same(&runs[0], alone);
    assert_int_equal(alone->skipped, runs->skipped);
    assert_string_equal(alone->where, runs->where);
}

/* 784-256 | 64-10: parameters, gradients and two moments of float32, the moments split by ZeRO. */
static void ranks_hold_their_stage_alone(void **state)
{
    for (int zero = 0; zero <= 1; zero++) {
        pipe_run runs[RANKS_MAX];
        train(&(pipe_run){.model = "mlp", .shares = 2, .stages = 2, .micros = 2, .zero = zero},
              runs);
        const size_t bytes = zero == 0 ? 16 : 12;
        for (int r = 0; r < 4; r++)
            assert_int_equal(runs[r].state_bytes, bytes * (r < 2 ? 200960 : 17098));
    }
}

/* Sums are made in another order; the copies of one tensor are the same all the same, also where
 * three ranks add. */
static void stages_share_parameters(void **state)
{
    static const struct {
        int shares, stages, zero;
        const char *precision;
        double tolerance;
    } cases[] = {{1, 2, 0, NULL, 1e-5}, {1, 3, 0, NULL, 1e-5}, {2, 2, 0, NULL, 1e-5},
                 {2, 3, 1, NULL, 1e-5}, {3, 2, 0, NULL, 1e-5}, {3, 2, 1, NULL, 1e-5},
                 {2, 3, 0, BF16, 0.02}, {2, 3, 1, BF16, 0.02}, {2, 2, 1, BF16_FLOAT_WIRE, 0.02}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        pipe_run want[RANKS_MAX], got[RANKS_MAX];
        pipe_run run = {.model = "tied",
                        .shares = cases[c].shares,
                        .stages = 1,
                        .micros = 3,
                        .precision = cases[c].precision};
        train(&run, want);
        run.stages = cases[c].stages;
        run.zero = cases[c].zero;
        train(&run, got);
        for (int u = 0; u < UPDATES; u++) {
            assert_near(got[0].losses[u], want[0].losses[u], cases[c].tolerance, 0);
            assert_near(got[0].norms[u], want[0].norms[u], cases[c].tolerance, 0);
        }
        for (int r = 1; r < run.shares * run.stages; r++)
            assert_int_equal(got[r].shared_hash, got[0].shared_hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_compute_the_same_bit_for_bit),
        cmocka_unit_test(computing_activations_again_changes_no_bit),
        cmocka_unit_test(activations_that_are_kept_are_few),
        cmocka_unit_test(grids_compute_the_same_bit_for_bit),
        cmocka_unit_test(sixteen_bits_are_the_same_too),
        cmocka_unit_test(an_overflow_on_a_middle_stage_is_one_on_all),
        cmocka_unit_test(ranks_hold_their_stage_alone),
        cmocka_unit_test(stages_share_parameters),
    };
    return cmocka_run_group_tests(tests, draw_dataset, free_dataset);
}
