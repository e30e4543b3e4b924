/* SPDX-License-Identifier: Apache-2.0
 * Tests training in 16 bits: compares the loss's scale with DeepSpeed's scaler and whole runs with
 * PyTorch's, which has rounded parameters and gradients, and checks the reports of an overflow. */
#include "check.h"
#include "drawn.h"
#include "engine_ranks.h"
#include "vectors.h"

#include <bucket_casts.h>
#include <errors.h>
#include <pthread.h>
#include <sampler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 320, BATCH = 32, EPOCHS = 6, UPDATES = EPOCHS * SAMPLES / BATCH };

static train_dataset dataset; /* as make_precision_vectors.py draws it */

static int draw_dataset(void **state)
{
    drawn_fill(&dataset, SAMPLES);
    return 0;
}

static int free_dataset(void **state)
{
    dataset_free(&dataset);
    return 0;
}

/* ---- The scaler ---------------------------------------------------------------------------- */

/* @param scales  text: those after each update of the script, whose 1 is an overflow */
static void check_scales(size_t row, const precision_config *precision, const char *script,
                         int count, const char *scales)
{
    loss_scaler scaler = loss_scaler_start(precision);
    for (int u = 0; u < count; u++) {
        char *end;
        const double before = scaler.scale, want = strtod(scales, &end);
        const scaler_verdict verdict = loss_scaler_update(&scaler, script[u] == '1');
        assert_true(end != scales);
        scales = end;
        if (scaler.scale != want)
            fail_msg("row %zu, update %d: %g, not %g", row, u, scaler.scale, want);
        assert_int_equal(verdict == SCALER_STEP, script[u] == '0');
        assert_int_equal(verdict == SCALER_LOWER, scaler.scale < before);
    }
    if (script[count] == '1')
        assert_int_equal(loss_scaler_update(&scaler, true), SCALER_AT_LEAST);
}

static void scales_are_those_of_deepspeed(void **state)
{
    const char *row;
    size_t i = 0;
    for (; (row = vector_row("precision/scaler", i)) != NULL; i++) {
        precision_config precision = {.scales = true};
        int old, consecutive, count, scales;
        char script[49];
        assert_int_equal(sscanf(row, "%d %ld %ld %ld %d %ld %48s %d%n", &old,
                                &precision.set.scale_power, &precision.set.scale_window,
                                &precision.set.hysteresis, &consecutive, &precision.set.min_scale,
                                script, &count, &scales),
                         8);
        precision.old_window = old;
        precision.set.consecutive_hysteresis = consecutive;
        check_scales(i, &precision, script, count, row + scales);
    }
    assert_int_equal(i, 84);
}

static void a_fixed_scale_stays(void **state)
{
    const precision_config precision = {.set = {.loss_scale = 24, .min_scale = 1}, .scales = true};
    loss_scaler scaler = loss_scaler_start(&precision);
    assert_int_equal(loss_scaler_update(&scaler, true), SCALER_SKIP);
    assert_int_equal(loss_scaler_update(&scaler, false), SCALER_STEP);
    assert_true(scaler.scale == 24.0);
}

/* ---- Whole runs ---------------------------------------------------------------------------- */

typedef struct precision_run {
    engine_rank on;
    double losses[UPDATES], norms[UPDATES], scales[UPDATES];
    bool skipped[UPDATES];
    long steps, skips;
    char line[OVERFLOW_TEXT_MAX];
} precision_run;

static ring_status run_updates(precision_run *run, train_engine *engine)
{
    train_sampler sampler;
    const size_t window = (size_t)(BATCH / run->on.ranks);
    RING_TRY(sampler_create(&sampler, SAMPLES, run->on.ranks, run->on.rank, &(sampler_rule){0}));
    ring_status status = RING_OK;
    for (int u = 0; u < UPDATES && status == RING_OK; u++) {
        const int each = SAMPLES / BATCH;
        engine_result result = {0};
        sampler_set_epoch(&sampler, (uint64_t)(u / each));
        run->scales[u] = engine->overflow.scaler.scale;
        status = engine_update(engine, &dataset, sampler.order + (size_t)(u % each) * window,
                               window, engine->config->optimizer.lr, &result);
        run->losses[u] = result.loss;
        run->norms[u] = result.grad_norm;
        run->skipped[u] = result.skipped;
    }
    run->steps = engine->optimizer.step;
    run->skips = engine->overflow.skipped;
    sampler_destroy(&sampler);
    return status;
}

static ring_status work(train_engine *engine, void *rank)
{
    precision_run *run = rank;
    const ring_status status = run_updates(run, engine);
    memcpy(run->line, engine->overflow.lines[0], sizeof run->line);
    return status;
}

static void train(precision_run *runs, int ranks, const char *config)
{
    runs[0] = (precision_run){0};
    engine_ranks_run(&(engine_job){.config = config,
                                   .model = "mlp",
                                   .loss = LOSS_CROSS_ENTROPY,
                                   .samples = SAMPLES,
                                   .work = work},
                     ranks, runs, sizeof *runs);
}

/* A gradient that lies between two numbers of 16 bits may be rounded to the other one here. */
#define EXPECT_RUN(config, name, tolerance, norm_tolerance) \
    expect_run(config, vector_doubles("precision/" name "_losses", UPDATES), \
               vector_doubles("precision/" name "_norms", UPDATES), \
               vector_doubles("precision/" name "_scales", UPDATES), tolerance, norm_tolerance)
static void expect_run(const char *config, const double *losses, const double *norms,
                       const double *scales, double tolerance, double norm_tolerance)
{
    precision_run run;
    train(&run, 1, config);
    if (run.on.status != RING_OK)
        fail_msg("%s", run.on.error);
    long skipped = 0;
    for (int u = 0; u < UPDATES; u++) {
        assert_near(run.losses[u], losses[u], tolerance, 0);
        assert_int_equal(run.skipped[u], norms[u] == 0.0);
        assert_true(run.scales[u] == scales[u]);
        if (norms[u] != 0.0)
            assert_near(run.norms[u], norms[u], norm_tolerance, 0);
        skipped += run.skipped[u];
    }
    assert_int_equal(run.skips, skipped);
    assert_int_equal(run.steps, UPDATES - skipped);
}

static void fp16_loses_and_skips_as_pytorch(void **state)
{
    EXPECT_RUN("{train_batch_size: 32, gradient_clipping: 0.5, optimizer: {type: \"AdamW\", "
               "params: {lr: 1e-3, weight_decay: 0.01}}, fp16: {enabled: true, "
               "initial_scale_power: 22, loss_scale_window: 6}}",
               "fp16", 3e-5, 3e-4);
}

static void bf16_loses_as_pytorch(void **state)
{
    EXPECT_RUN("{train_batch_size: 32, gradient_accumulation_steps: 2, gradient_clipping: 0, "
               "optimizer: {type: \"SGD\", params: {lr: 0.01}}, bf16: {enabled: "
               "true}}",
               "bf16", 1e-5, 3e-4);
}

static void an_overflow_at_the_least_scale_stops_all_ranks(void **state)
{
    precision_run runs[2];
    train(runs, 2,
          "{train_batch_size: 32, optimizer: {type: \"SGD\", params: {lr: 0.01}}, fp16: {enabled: "
          "true, initial_scale_power: 26, min_loss_scale: 33554432}}");
    for (int r = 0; r < 2; r++) {
        assert_int_equal(runs[r].on.status, RING_ERR_USAGE);
        assert_int_equal(runs[r].skips, 2); /* hysteresis, and down to the least */
        assert_non_null(strstr(runs[r].on.error, "Current loss scale already at minimum - cannot "
                                                 "decrease scale anymore (fp16.min_loss_scale "
                                                 "33554432, update 3): the gradient of "));
        assert_string_equal(runs[r].on.error, runs[0].on.error);
        assert_string_equal(runs[r].line, "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted "
                                          "loss scale: 67108864, reducing to 33554432");
    }
}

/* ---- Where it overflowed ------------------------------------------------------------------- */

typedef struct overflow_case {
    const ring_unique_id *id;
    int rank, stage;
    ring_dtype type;
    float spoilt[2]; /* by rank */
    char first_line[OVERFLOW_TEXT_MAX], line[OVERFLOW_TEXT_MAX];
    ring_status status;
} overflow_case;

/* From the last bucket to the first, as an update does; @p spoilt becomes a gradient of the second
 * layer's bias, and of the first layer's where @p both. */
static ring_status exchange(overflow_watch *watch, const zero_memory *memory, ring_comm *comm,
                            train_model *model, float spoilt, bool both)
{
    const train_partition *partition = memory->partition;
    const zero_array *on_wire = zero_array_of(memory, ZERO_WIRE);
    for (int b = partition->count - 1; b >= 0; b--) {
        const size_t count = partition->buckets[b].count;
        memset(zero_bucket(memory, zero_array_of(memory, ZERO_NODE_GRADS), b), 0,
               count * sizeof(float));
        if (partition_bucket_of(partition, 1) == b)
            model->grads[3][2] = spoilt;
        if (partition_bucket_of(partition, 0) == b && both)
            model->grads[1][1] = spoilt;
        casts_keep_grads(memory, b, false);
        casts_send_grads(memory, b);
        overflow_look(watch, memory, b);
        void *wire = zero_bucket(memory, on_wire, b);
        RING_TRY(ring_all_reduce(wire, wire, count, on_wire->type, RING_SUM, comm, NULL));
        casts_take_grads(memory, b, zero_owned(memory, on_wire, b), false);
    }
    return RING_OK;
}

static ring_status overflow_twice(overflow_case *at, ring_comm *comm, train_model *model,
                                  const train_partition *partition, zero_memory *memory)
{
    const precision_config precision = {.params = at->type,
                                        .grads = at->type,
                                        .wire = at->type,
                                        .masters = true,
                                        .skips = true,
                                        .scales = true,
                                        .set = {.scale_power = 4, .hysteresis = 1}};
    const overflow_tensors tensors = {.here = &model->tensors, .whole = &model->tensors};
    overflow_watch watch = overflow_start(&precision);
    zero_memory_plan(memory, partition, &precision, at->stage, at->rank);
    RING_TRY(zero_memory_allocate(memory, model));
    RING_TRY(exchange(&watch, memory, comm, model, at->rank == 0 ? INFINITY : 0.0F, true));
    RING_TRY(overflow_skip(&watch, memory, &tensors, comm, 7));
    memcpy(at->first_line, watch.lines[1], sizeof at->first_line);
    RING_TRY(exchange(&watch, memory, comm, model, at->spoilt[at->rank], false));
    RING_TRY(overflow_skip(&watch, memory, &tensors, comm, 8));
    memcpy(at->line, watch.lines[1], sizeof at->line);
    return RING_OK;
}

static void *overflow_rank(void *argument)
{
    overflow_case *at = argument;
    const op_settings five = {.outputs = 5};
    model_spec spec;
    train_model model;
    train_partition partition;
    zero_memory memory = {0};
    ring_comm *comm = NULL;
    model_spec_start(&spec, "two", (op_shape){.dim = {5}, .dims = 1});
    model_spec_add(&spec, &op_linear, &five);
    model_spec_add(&spec, &op_linear, &five);
    at->status = model_create(&model, &spec, 1, 1);
    if (at->status == RING_OK)
        at->status = partition_create(&partition, &model, &(partition_rules){.bucket_bytes = 64},
                                      2);
    if (at->status == RING_OK)
        at->status = ring_comm_init(&comm, 2, at->id, at->rank);
    if (at->status == RING_OK)
        at->status = overflow_twice(at, comm, &model, &partition, &memory);
    ring_comm_destroy(comm);
    zero_memory_free(&memory);
    partition_free(&partition);
    model_destroy(&model);
    model_spec_free(&spec);
    return NULL;
}

static void an_overflow_is_told_with_rank_and_tensor(void **state)
{
    static const struct {
        ring_dtype type;
        float spoilt[2];
        const char *where;
    } cases[] = {
        {RING_FLOAT16, {1.0F, 70000.0F}, "rank 1"},
        {RING_FLOAT16, {-70000.0F, 70000.0F}, "rank 0"},
        {RING_BFLOAT16, {0.0F, NAN}, "rank 1"},
        {RING_FLOAT16, {40000.0F, 40000.0F}, "the sum over ranks"},
    };
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        for (int stage = 0; stage <= 3; stage++) {
            overflow_case runs[2];
            pthread_t threads[2];
            ring_unique_id id;
            char want[OVERFLOW_TEXT_MAX];
            assert_int_equal(ring_get_unique_id(&id), RING_OK);
            for (int r = 0; r < 2; r++) {
                runs[r] =
                    (overflow_case){.id = &id, .rank = r, .stage = stage, .type = cases[c].type};
                memcpy(runs[r].spoilt, cases[c].spoilt, sizeof runs[r].spoilt);
                assert_int_equal(pthread_create(&threads[r], NULL, overflow_rank, &runs[r]), 0);
            }
            snprintf(want, sizeof want,
                     "OVERFLOW in update 8: %s, tensor 1.bias from element 2 on, scale 8 -> 4, "
                     "skipped 2 of 8",
                     cases[c].where);
            for (int r = 0; r < 2; r++)
                pthread_join(threads[r], NULL);
            for (int r = 0; r < 2; r++) {
                assert_int_equal(runs[r].status, RING_OK);
                assert_string_equal(runs[r].first_line,
                                    "OVERFLOW in update 7: rank 0, tensor 0.bias from element 1 "
                                    "on, scale 16 -> 8, skipped 1 of 7");
                assert_string_equal(runs[r].line, want);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_are_those_of_deepspeed),
        cmocka_unit_test(a_fixed_scale_stays),
        cmocka_unit_test(fp16_loses_and_skips_as_pytorch),
        cmocka_unit_test(bf16_loses_as_pytorch),
        cmocka_unit_test(an_overflow_at_the_least_scale_stops_all_ranks),
        cmocka_unit_test(an_overflow_is_told_with_rank_and_tensor),
    };
    return cmocka_run_group_tests(tests, draw_dataset, free_dataset);
}
