/* SPDX-License-Identifier: Apache-2.0
 * Tensor ranks: splits of a network and their refusals, as pure functions; and ranks as threads
 * that compute the same as one rank, with data ranks, ZeRO and a pipeline beside them. */
#include "check.h"
#include "drawn.h"
#include "engine_ranks.h"

#include <builtin.h>
#include <errors.h>
#include <gpt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensor_split.h>

/* ---- Networks ------------------------------------------------------------------------------ */

/* A pair, a pair with dropout, a layer that shares its weight, and one on its own; the input of the
 * second pair is read by a residual connection, too. */
static ring_status build_mixed(model_spec *spec)
{
    model_spec_start(spec, "mixed", (op_shape){.dim = {DRAWN_PIXELS}, .dims = 1});
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 24});
    model_spec_add(spec, &op_relu, NULL);
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 12});
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 16});
    model_spec_add(spec, &op_tanh, NULL);
    model_spec_add(spec, &op_dropout, &(op_settings){.probability = 0.25});
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 12, .no_bias = true});
    model_spec_add(spec, &op_add, NULL)->inputs[1] = 2;
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 12});
    model_spec_add(spec, &op_gelu, NULL);
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 12})->tie = 8;
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 10});
    return RING_OK;
}

enum { TOKENS = 8, WORDS = 32, NODES = 64 };

static ring_status build(model_spec *spec, const char *name)
{
    static const gpt_sizes sizes = {
        .layers = 2, .heads = 4, .width = 16, .tokens = TOKENS, .words = WORDS, .tied = true};
    static const size_t shallow[] = {DRAWN_PIXELS, 24, 10},
                        deep[] = {DRAWN_PIXELS, 24, 16, 12, 8, 10};
    gpt_sizes drops = sizes;
    drops.dropout = 0.1;
    drops.attention_dropout = 0.2;
    drops.tied = false;
    if (strcmp(name, "mixed") == 0)
        return build_mixed(spec);
    if (strcmp(name, "shallow") == 0)
        return model_build_mlp(spec, name, shallow, COUNT_OF(shallow) - 1);
    if (strcmp(name, "deep") == 0)
        return model_build_mlp(spec, name, deep, COUNT_OF(deep) - 1);
    if (strcmp(name, "gpt drops") == 0)
        return model_build_gpt(spec, name, &drops);
    return model_build_gpt(spec, name, &sizes);
}

/* ---- Splitting ----------------------------------------------------------------------------- */

/* @return the cuts as letters: - outputs | thirds = between < inputs . nothing. */
static const char *cuts_of(const model_spec *spec, int ranks, tensor_cut *cuts, train_model *model)
{
    static char text[NODES_MAX + 1];
    static const char letters[] = {[CUT_NONE] = '.',
                                   [CUT_OUTPUTS] = '-',
                                   [CUT_THIRDS] = '|',
                                   [CUT_BETWEEN] = '=',
                                   [CUT_INPUTS] = '<'};
    assert_int_equal(model_plan(model, spec), RING_OK);
    if (tensor_split_find(cuts, spec, model, ranks) != RING_OK)
        return train_error();
    for (int n = 0; n < spec->count; n++)
        text[n] = letters[cuts[n]];
    text[spec->count] = '\0';
    return text;
}

static void pairs_are_found(void **state)
{
    static const struct {
        const char *model, *cuts;
    } cases[] = {{"shallow", "-=<"},
                 {"deep", "-=<.-=<.."},
                 {"mixed", "-=<-==<....."},
                 {"gpt", "...|=<..-=<..|=<..-=<..."},
                 {"gpt drops", "....|=<...-=<...|=<...-=<...."}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        model_spec spec;
        train_model model;
        tensor_cut cuts[NODES];
        assert_int_equal(build(&spec, cases[c].model), RING_OK);
        assert_string_equal(cuts_of(&spec, 2, cuts, &model), cases[c].cuts);
        model_destroy(&model);
        model_spec_free(&spec);
    }
}

static void expect_refused(model_spec *spec, int ranks, const char *error)
{
    train_model model;
    tensor_cut cuts[NODES];
    const char *got = cuts_of(spec, ranks, cuts, &model);
    if (strstr(got, error) == NULL)
        fail_msg("\"%s\", not \"%s\"", got, error);
    model_destroy(&model);
    model_spec_free(spec);
}

static void what_cannot_be_split_is_refused(void **state)
{
    static const size_t widths[] = {8, 10};
    model_spec spec;
    build(&spec, "gpt");
    expect_refused(&spec, 3,
                   "3 tensor ranks cannot share the 4 heads of layer transformer.h.0.attn "
                   "(attention) of gpt evenly");
    build(&spec, "gpt");
    expect_refused(&spec, 8, "the 4 heads");
    build(&spec, "mixed");
    expect_refused(&spec, 5, "5 tensor ranks cannot share the 24 features of layer 0 (linear)");
    build(&spec, "mixed");
    expect_refused(&spec, 3, "the 16 features of layer 3 (linear)");
    model_build_mlp(&spec, "single", widths, 1);
    expect_refused(&spec, 2, "2 tensor ranks cannot share the layers of single");
}

/* The parts of all ranks make up the tensor, each element once. */
static void check_parts(const train_tensor *tensor, const tensor_order *order)
{
    float *whole = malloc(3 * tensor->count * sizeof *whole);
    assert_non_null(whole);
    float *again = whole + tensor->count, *ordered = again + tensor->count;
    for (size_t i = 0; i < tensor->count; i++) {
        whole[i] = (float)i;
        again[i] = -1.0F;
    }
    for (size_t r = 0; r < order->parts; r++) {
        size_t part;
        const size_t place = tensor_order_part(order, (int)r, &part);
        float *own = ordered + place;
        tensor_order_take(order, place, part, own, whole);
        assert_true(own[0] == (float)(r * (part / order->blocks)));
        assert_true(own[part - 1] > own[0] || part == 1);
    }
    tensor_order_restore(order, ordered, again);
    assert_memory_equal(again, whole, tensor->count * sizeof *whole);
    for (size_t i = 0, run; i < tensor->count; i++)
        assert_true(ordered[tensor_order_place(order, i, &run)] == (float)i);
    free(whole);
}

static void check_node(const model_node *whole, tensor_cut cut, const train_model *model,
                       const train_model *own, int ranks)
{
    for (int t = 0; t < whole->use.tensor_count; t++) {
        const train_tensor *tensor = &model->tensors.list[whole->tensors[t]];
        const train_tensor *part = tensors_find(&own->tensors, tensor->name);
        const tensor_order order = tensor_split_order(cut, &whole->use, t, tensor->count, ranks);
        assert_non_null(part);
        assert_int_equal(part->count * order.parts, tensor->count);
        assert_int_equal(part->tie >= 0, tensor->tie >= 0);
        assert_int_equal(part->group, tensor->group);
        check_parts(tensor, &order);
    }
}

static void ranks_have_their_parts_of_every_tensor(void **state)
{
    static const char *const models[] = {"mixed", "gpt", "gpt drops"};
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        for (int ranks = 1; ranks <= 4; ranks *= 2) {
            for (int rank = 0; rank < ranks; rank++) {
                model_spec spec, part;
                train_model model, own;
                tensor_cut cuts[NODES];
                build(&spec, models[m]);
                cuts_of(&spec, ranks, cuts, &model);
                assert_int_equal(tensor_split_spec(&part, &spec, &model, cuts, ranks, rank),
                                 RING_OK);
                assert_int_equal(model_plan(&own, &part), RING_OK);
                assert_memory_equal(&own.output, &model.output, sizeof own.output);
                for (int n = 0; n < spec.count; n++)
                    check_node(&model.nodes[n], cuts[n], &model, &own, ranks);
                model_destroy(&own);
                model_destroy(&model);
                model_spec_free(&part);
                model_spec_free(&spec);
            }
        }
    }
}

/* ---- Schedules ----------------------------------------------------------------------------- */

/* Each range begins where the pass is, and what follows a SUM waits for it. */
static void check_schedule(const update_schedule *schedule, const train_partition *partition,
                           int nodes)
{
    int forward = 0, backward = nodes, sums[2] = {0};
    for (int i = 0; i < schedule->count; i++) {
        const update_instruction *at = &schedule->list[i], *next = at + 1;
        if (at->kind == UPDATE_FORWARD) {
            assert_int_equal(at->first, forward);
            for (int n = at->first + 1; n < at->end; n++)
                assert_int_not_equal(partition->sums[n], SUM_INPUT);
            forward = at->end;
        } else if (at->kind == UPDATE_BACKWARD) {
            assert_int_equal(at->end, backward);
            for (int n = at->first; n < at->end - 1; n++)
                assert_int_not_equal(partition->sums[n], SUM_GRAD);
            backward = at->first;
        } else if (at->kind == UPDATE_SUM) {
            const bool back = at->towards < 0;
            sums[back]++;
            assert_int_equal(at->first, back ? backward - 1 : forward);
            assert_int_equal(partition->sums[at->first], back ? SUM_GRAD : SUM_INPUT);
            assert_int_equal(next->kind, back ? UPDATE_BACKWARD : UPDATE_FORWARD);
            assert_int_equal(next->after[0], i);
            assert_int_equal(schedule->list[at->after[0]].kind, next->kind);
        }
    }
    assert_int_equal(forward, nodes);
    assert_int_equal(backward, 0);
    assert_int_equal(sums[0], 4);
    assert_int_equal(sums[1], 4);
}

static void passes_are_cut_where_ranks_sum(void **state)
{
    for (int stage = 0; stage <= ZERO_STAGE_MAX; stage++) {
        for (size_t bytes = 1; bytes <= 1 << 16; bytes *= 16) {
            tensor_parallel tensor = {.ranks = 2};
            train_model own;
            train_partition partition;
            update_schedule schedule;
            model_spec spec;
            build(&spec, "gpt drops");
            assert_int_equal(tensor_parallel_create(&tensor, &spec), RING_OK);
            assert_int_equal(model_plan(&own, &tensor.own), RING_OK);
            assert_int_equal(partition_create(&partition, &own,
                                              &(partition_rules){.bucket_bytes = bytes}, 2),
                             RING_OK);
            assert_int_equal(schedule_update(&schedule, &partition, stage, 1), RING_OK);
            check_schedule(&schedule, &partition, own.node_count);
            schedule_free(&schedule);
            partition_free(&partition);
            model_destroy(&own);
            tensor_parallel_destroy(&tensor);
            model_spec_free(&spec);
        }
    }
}

/* ---- Training ------------------------------------------------------------------------------ */

enum { SAMPLES = 8, STORED = 61, UPDATES_MAX = 50, RANKS_MAX = 8, PARAMS_MAX = 32768 };

static train_dataset images, text;

static int draw_datasets(void **state)
{
    drawn_fill(&images, STORED);
    drawn_fill(&text, STORED);
    free(text.labels.data);
    text.labels.data = NULL;
    for (size_t i = 0; i < (size_t)STORED * DRAWN_PIXELS; i++)
        text.images.data[i] %= WORDS;
    text.token_bytes = 1;
    text.classes = WORDS;
    text.count = STORED;
    text.features = TOKENS;
    return 0;
}

static int free_datasets(void **state)
{
    dataset_free(&images);
    dataset_free(&text);
    return 0;
}

/* A run, and what one rank of it saw. */
typedef struct tensor_run {
    engine_rank on;
    const char *model, *optimizer, *settings; /* settings: more of them */
    int shares, stages, tensors, updates, zero, idle, interval;
    double losses[UPDATES_MAX], norms[UPDATES_MAX], score;
    float params[PARAMS_MAX];
    size_t elements, state_bytes;
} tensor_run;

static void configure(const tensor_run *run, char config[512])
{
    snprintf(config, 512,
             "{train_batch_size: %d, gradient_accumulation_steps: 2, gradient_clipping: 0.05, "
             "optimizer: {type: \"%s\", params: {lr: 0.01}}, zero_optimization: {stage: %d, "
             "reduce_bucket_size: 500, stage3_param_persistence_threshold: 60}, pipeline: {stages: "
             "%d, activation_checkpoint_interval: "
             "%d}, tensor_parallel: {autotp_size: %d}%s}",
             SAMPLES, run->optimizer, run->zero, run->stages, run->interval, run->tensors,
             run->settings);
}

static ring_status run_updates(tensor_run *run, train_engine *engine, const train_dataset *dataset)
{
    const int most = SAMPLES / run->shares, share = engine->rank;
    for (int u = 0; u < run->updates; u++) {
        uint32_t order[SAMPLES];
        engine_result result = {0};
        const int samples = share == 1 ? most - run->idle : most;
        for (int i = 0; i < most; i++)
            order[i] = (uint32_t)(u * SAMPLES + i * run->shares + share) % STORED;
        const engine_share part = {.order = order,
                                   .samples = (size_t)samples,
                                   .micro = (size_t)most / 2,
                                   .total = (size_t)(SAMPLES - run->idle),
                                   .micro_batches = 2};
        RING_TRY(engine_update_share(engine, dataset, &part, 0.05, &result));
        run->losses[u] = result.loss;
        run->norms[u] = result.grad_norm;
    }
    return engine_check_params(engine);
}

static ring_status look(tensor_run *run, train_engine *engine, const train_dataset *dataset)
{
    const tensor_table *tensors = &engine_network(engine)->tensors;
    const float *params;
    engine_score score;
    RING_TRY(engine_evaluate(engine, dataset, &score));
    run->score = score.loss;
    RING_TRY(engine_params(engine, &params));
    for (int t = 0; t < tensors->count; t++) {
        const train_tensor *tensor = &tensors->list[t];
        if (tensor->tie >= 0)
            continue;
        memcpy(run->params + run->elements, params + tensor->offset,
               tensor->count * sizeof *params);
        run->elements += tensor->count;
    }
    run->state_bytes = engine_state_bytes(engine);
    return RING_OK;
}

static ring_status work(train_engine *engine, void *rank)
{
    tensor_run *run = rank;
    const train_dataset *dataset = strncmp(run->model, "gpt", 3) == 0 ? &text : &images;
    RING_TRY(run_updates(run, engine, dataset));
    return look(run, engine, dataset);
}

static int ranks_of(const tensor_run *run)
{
    return run->shares * run->stages * run->tensors;
}

/* @return a run on each rank, to be free()d. Fails unless all have the same: so have parameters
 * that all tensor ranks hold. */
static tensor_run *train(const tensor_run *base)
{
    char config[512], what[64];
    const int ranks = ranks_of(base);
    tensor_run *runs = calloc((size_t)ranks, sizeof *runs);
    assert_non_null(runs);
    runs[0] = *base;
    configure(base, config);
    snprintf(what, sizeof what, "%s, %d x %d x %d", base->model, base->shares, base->stages,
             base->tensors);
    engine_ranks_run(&(engine_job){.config = config,
                                   .model = base->model,
                                   .build = build,
                                   .loss = LOSS_CROSS_ENTROPY,
                                   .samples = SAMPLES,
                                   .algorithm = "ring",
                                   .work = work},
                     ranks, runs, sizeof *runs);
    engine_ranks_expect(ranks, runs, sizeof *runs, what);
    for (int r = 0; r < ranks; r++) {
        assert_memory_equal(runs[r].params, runs[0].params, sizeof runs[0].params);
        assert_memory_equal(runs[r].losses, runs[0].losses, sizeof runs[0].losses);
        assert_memory_equal(runs[r].norms, runs[0].norms, sizeof runs[0].norms);
        assert_true(runs[r].score == runs[0].score);
    }
    return runs;
}

/* Adam makes whole steps of gradients that are 0 but for rounding, as those of a key's bias. */
static void expect_near(const tensor_run *got, const tensor_run *want, double tolerance)
{
    const bool adam = strcmp(want->optimizer, "Adam") == 0;
    double difference = 0.0, sum = 0.0;
    for (int u = 0; u < want->updates; u++) {
        assert_near(got->losses[u], want->losses[u], tolerance, 0);
        assert_near(got->norms[u], want->norms[u], 10 * tolerance, 0);
    }
    assert_near(got->score, want->score, tolerance, 0);
    assert_int_equal(got->elements, want->elements);
    for (size_t i = 0; i < want->elements; i++) {
        const double off = (double)got->params[i] - (double)want->params[i];
        difference += off * off;
        sum += (double)want->params[i] * (double)want->params[i];
    }
    assert_near(sqrt(difference / sum), 0, 0, adam ? 10 * tolerance : tolerance);
}

/* Trains on one rank and on those of @p run. */
static void expect_as_one_rank(const tensor_run *run, double tolerance)
{
    tensor_run alone = *run;
    alone.shares = alone.stages = alone.tensors = 1;
    alone.zero = 0;
    tensor_run *want = train(&alone), *got = train(run);
    assert_true(want->losses[want->updates - 1] != want->losses[0]);
    expect_near(got, want, tolerance);
    free(got);
    free(want);
}

static void data_pipeline_and_tensor_ranks_compute_one_ranks_updates(void **state)
{
    expect_as_one_rank(&(tensor_run){.model = "gpt",
                                     .optimizer = "SGD",
                                     .settings = "",
                                     .shares = 2,
                                     .stages = 2,
                                     .tensors = 2,
                                     .updates = 50},
                       1e-5);
}

static void tensor_ranks_compute_one_ranks_updates(void **state)
{
    static const char *const models[] = {"mixed", "gpt", "gpt drops"};
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        for (int tensors = 2; tensors <= 4; tensors *= 2)
            expect_as_one_rank(&(tensor_run){.model = models[m],
                                             .optimizer = tensors == 2 ? "SGD" : "Adam",
                                             .settings = "",
                                             .shares = 1,
                                             .stages = 1,
                                             .tensors = tensors,
                                             .updates = 10},
                               tensors == 2 ? 1e-5 : 1e-4);
    }
}

/* Also between a layer and the sum of what its shares give, where three stages are. */
static void stages_may_begin_within_a_pair(void **state)
{
    static const char *const models[] = {"shallow", "deep"};
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        for (int stages = 1; stages <= 4 - (int)(m == 0); stages++)
            expect_as_one_rank(&(tensor_run){.model = models[m],
                                             .optimizer = "SGD",
                                             .settings = "",
                                             .shares = 1,
                                             .stages = stages,
                                             .tensors = 2,
                                             .updates = 5},
                               1e-5);
    }
}

/* Stages 2 and 3 add micro-batches in another order. */
static void zero_splits_what_tensor_ranks_hold(void **state)
{
    tensor_run run = {.model = "gpt drops",
                      .optimizer = "Adam",
                      .settings = "",
                      .shares = 2,
                      .stages = 1,
                      .tensors = 2,
                      .updates = 6};
    tensor_run *whole = train(&run);
    for (run.zero = 1; run.zero <= 3; run.zero++) {
        tensor_run *got = train(&run);
        if (run.zero == 1) {
            assert_memory_equal(got->params, whole->params, sizeof got->params);
            assert_memory_equal(got->norms, whole->norms, sizeof got->norms);
        }
        assert_true(got->state_bytes < whole->state_bytes);
        free(got);
        expect_as_one_rank(&run, 1e-4);
        tensor_run tied = run;
        tied.model = "gpt";
        expect_as_one_rank(&tied, 1e-4);
    }
    free(whole);
}

/* Rounded alike by all tensor ranks. */
static void sixteen_bits_go_with_tensor_ranks(void **state)
{
    tensor_run run = {.optimizer = "SGD",
                      .settings = ", bf16: {enabled: true}",
                      .shares = 2,
                      .stages = 1,
                      .tensors = 2,
                      .updates = 4};
    for (run.zero = 0; run.zero <= 3; run.zero++) {
        run.model = run.zero < 2 ? "mixed" : "gpt drops";
        expect_as_one_rank(&run, 2e-3);
    }
    run.zero = 1;
    run.stages = 2;
    expect_as_one_rank(&run, 2e-3);
}

/* Sums of activations are made again where they lie within what is computed again. */
static void computing_activations_again_changes_no_bit(void **state)
{
    static const struct {
        const char *model, *settings;
        int shares, stages, zero;
    } cases[] = {{"mixed", "", 1, 1, 0},
                 {"gpt drops", "", 2, 1, 3},
                 {"gpt", ", bf16: {enabled: true}", 2, 1, 3},
                 {"gpt drops", "", 1, 2, 0}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        tensor_run run = {.model = cases[c].model,
                          .optimizer = "Adam",
                          .settings = cases[c].settings,
                          .shares = cases[c].shares,
                          .stages = cases[c].stages,
                          .tensors = 2,
                          .zero = cases[c].zero,
                          .updates = 3};
        tensor_run *kept = train(&run);
        for (run.interval = 1; run.interval <= 7; run.interval++) {
            tensor_run *again = train(&run);
            assert_memory_equal(again->params, kept->params, sizeof kept->params);
            assert_memory_equal(again->losses, kept->losses, sizeof kept->losses);
            assert_memory_equal(again->norms, kept->norms, sizeof kept->norms);
            assert_true(again->score == kept->score);
            free(again);
        }
        free(kept);
    }
}

/* One share of the data is out of samples in the second micro-batch. */
static void ranks_without_samples_take_part(void **state)
{
    const tensor_run run = {.model = "mixed",
                            .optimizer = "SGD",
                            .settings = "",
                            .shares = 2,
                            .stages = 1,
                            .updates = 4,
                            .idle = 2};
    tensor_run data = run, grid = run;
    data.tensors = 1;
    grid.tensors = 2;
    tensor_run *want = train(&data), *got = train(&grid);
    expect_near(got, want, 1e-5);
    free(got);
    free(want);
}

static void bits_are_the_same_again(void **state)
{
    const tensor_run run = {.model = "gpt drops",
                            .optimizer = "Adam",
                            .settings = "",
                            .shares = 1,
                            .stages = 2,
                            .tensors = 2,
                            .zero = 0,
                            .updates = 5};
    tensor_run *once = train(&run), *again = train(&run);
    assert_memory_equal(once->params, again->params, sizeof once->params);
    assert_memory_equal(once->norms, again->norms, sizeof once->norms);
    free(again);
    free(once);
}

/* Of "gpt": 2 layers of 16 features; halves of four matrices and of two biases a layer. */
static void ranks_hold_their_share_alone(void **state)
{
    const size_t layer = 16 * 48 + 48 + 16 * 16 + 16 * 64 + 64 + 64 * 16;
    tensor_run run = {.model = "gpt",
                      .optimizer = "SGD",
                      .settings = "",
                      .shares = 1,
                      .stages = 1,
                      .tensors = 1,
                      .updates = 1};
    tensor_run *whole = train(&run);
    run.tensors = 2;
    tensor_run *half = train(&run);
    assert_int_equal(whole->state_bytes - half->state_bytes, 2 * layer / 2 * 2 * sizeof(float));
    free(half);
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_found),
        cmocka_unit_test(what_cannot_be_split_is_refused),
        cmocka_unit_test(ranks_have_their_parts_of_every_tensor),
        cmocka_unit_test(passes_are_cut_where_ranks_sum),
        cmocka_unit_test(data_pipeline_and_tensor_ranks_compute_one_ranks_updates),
        cmocka_unit_test(tensor_ranks_compute_one_ranks_updates),
        cmocka_unit_test(stages_may_begin_within_a_pair),
        cmocka_unit_test(zero_splits_what_tensor_ranks_hold),
        cmocka_unit_test(sixteen_bits_go_with_tensor_ranks),
        cmocka_unit_test(computing_activations_again_changes_no_bit),
        cmocka_unit_test(ranks_without_samples_take_part),
        cmocka_unit_test(bits_are_the_same_again),
        cmocka_unit_test(ranks_hold_their_share_alone),
    };
    return cmocka_run_group_tests(tests, draw_datasets, free_datasets);
}
