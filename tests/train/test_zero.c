/* SPDX-License-Identifier: Apache-2.0
 * The stages of ZeRO as threads: the same losses and parameters, exactly the bytes on the wire and
 * of model state that the formulas say. RING_TEST_LONG: for all combinations. */
#include "check.h"
#include "draw.h"
#include "drawn.h"
#include "engine_ranks.h"

#include <builtin.h>
#include <clock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the stored samples the last ranks have one batch more to evaluate than the first. */
enum { STORED = 513, SAMPLES = 96, BATCH = 32, UPDATES = 9, RANKS_MAX = 4, STAGES = 4 };

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
typedef struct zero_run {
    engine_rank on;
    int ranks, stage, accumulation;
    const char *model, *optimizer, *algorithm;
    const char *precision; /* keys of the configuration; NULL: float32 */
    const char *zero;      /* further keys of zero_optimization; NULL: no tensor stays whole */
    double losses[UPDATES], norms[UPDATES], accuracy;
    uint64_t params_hash;
    bool timed;
    size_t padded, state_bytes, live_bytes, largest, live;
    uint64_t update_bytes; /* sent in all updates, without losses and norms */
} zero_run;

/* The samples that ranks and micro-batches divide. */
static int global_batch(const zero_run *run)
{
    return BATCH - BATCH % (run->ranks * run->accumulation);
}

static void configure(const zero_run *run, char text[512])
{
    snprintf(text, 512,
             "{train_batch_size: %d, gradient_accumulation_steps: %d, gradient_clipping: 0.3, "
             "optimizer: %s, zero_optimization: {stage: %d, %s}, %s}",
             global_batch(run), run->accumulation, run->optimizer, run->stage,
             run->zero != NULL ? run->zero : "stage3_param_persistence_threshold: 0",
             run->precision != NULL ? run->precision : "");
}

static uint64_t bytes_sent(const ring_comm *comm)
{
    ring_comm_info info = {.size = sizeof info};
    return ring_comm_get_info(comm, &info) == RING_OK ? info.bytes_sent : 0;
}

/* An update's small calls beside gradients and parameters: the loss, wishes to stop, missing
 * samples, and from stage 1 on the norm. */
static ring_status measure_small_calls(const zero_run *run, ring_comm *comm, uint64_t *bytes)
{
    double one = 0.0, sums[LOSS_SUMS] = {0.0}, all[RANKS_MAX];
    const uint64_t before = bytes_sent(comm);
    RING_TRY(ring_all_reduce(sums, sums, LOSS_SUMS, RING_FLOAT64, RING_SUM, comm, NULL));
    if (run->stage > 0)
        RING_TRY(ring_all_gather(&one, all, 1, RING_FLOAT64, comm, NULL));
    *bytes = bytes_sent(comm) - before;
    return RING_OK;
}

/* Each kind of instruction took some of the time, all together not more than there was. */
static bool is_timed(const train_engine *engine, double most)
{
    static const update_kind kinds[] = {UPDATE_LOAD,   UPDATE_FORWARD, UPDATE_BACKWARD,
                                        UPDATE_REDUCE, UPDATE_CLIP,    UPDATE_OPTIMIZE};
    double sum = 0.0;
    bool all = true;
    for (int k = 0; k < UPDATE_KINDS; k++)
        sum += engine->times.busy[k] + engine->times.waited[k];
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        all = all && engine->times.busy[kinds[k]] > 0.0;
    return all && sum <= most &&
           (engine->zero_stage > 0) == (engine->times.busy[UPDATE_GATHER] > 0.0);
}

/* Rank r takes every ranks-th sample, so that all splits have the same global batches. */
static ring_status run_updates(zero_run *run, train_engine *engine)
{
    ring_comm *comm = run->on.comm;
    uint32_t order[SAMPLES];
    const size_t mine = (size_t)(global_batch(run) / run->ranks);
    uint64_t small;
    RING_TRY(measure_small_calls(run, comm, &small));
    const uint64_t before = bytes_sent(comm);
    const double start = train_now();
    for (int u = 0; u < UPDATES; u++) {
        engine_result result = {0};
        for (size_t i = 0; i < mine; i++)
            order[i] = (uint32_t)((u * BATCH + (int)i * run->ranks + run->on.rank) % SAMPLES);
        RING_TRY(engine_update(engine, &dataset, order, mine, 0.01, &result));
        run->losses[u] = result.loss;
        run->norms[u] = result.grad_norm;
    }
    run->timed = is_timed(engine, train_now() - start);
    run->update_bytes = bytes_sent(comm) - before - UPDATES * small;
    engine_score score;
    const ring_status status = engine_evaluate(engine, &dataset, &score);
    run->accuracy = score.accuracy;
    return status;
}

/* @return elements of the largest range, without buckets that have a live place of their own. */
static size_t largest_range(const train_partition *partition)
{
    size_t largest = 0;
    for (int r = 0; r < partition->ranges; r++) {
        size_t elements = 0;
        for (int b = r; b >= 0; b = partition_beside(partition, b))
            elements += partition->buckets[b].is_tied ? 0 : partition->buckets[b].count;
        largest = elements > largest ? elements : largest;
    }
    return largest;
}

static ring_status measure(zero_run *run, train_engine *engine)
{
    RING_TRY(engine_params_hash(engine, &run->params_hash));
    run->padded = engine->partition.elements[LAYOUT_FULL];
    run->largest = largest_range(&engine->partition);
    run->live = engine->partition.elements[LAYOUT_LIVE];
    run->state_bytes = engine_state_bytes(engine);
    run->live_bytes = zero_live_bytes(&engine->memory);
    return engine_check_params(engine);
}

static ring_status work(train_engine *engine, void *rank)
{
    RING_TRY(run_updates(rank, engine));
    return measure(rank, engine);
}

/* Three buckets, of which the last but one has no tensors of its own but the first's. */
static ring_status build_tied(model_spec *spec)
{
    const op_settings wide = {.outputs = 200}, classes = {.outputs = 10};
    model_spec_start(spec, "tied", (op_shape){.dim = {DRAWN_PIXELS}, .dims = 1});
    model_spec_add(spec, &op_linear, &wide);
    model_spec_add(spec, &op_linear, &wide);
    model_spec_add(spec, &op_tanh, &(op_settings){0});
    model_spec_add(spec, &op_linear, &wide)->tie = 1;
    model_spec_add(spec, &op_linear, &classes);
    return RING_OK;
}

/* "deep": four buckets of which none divides by the ranks, so that live memory has zeros to keep.
 */
static ring_status build(model_spec *spec, const char *name)
{
    static const size_t widths[] = {DRAWN_PIXELS, 129, 131, 127, 133, 10};
    if (strcmp(name, "deep") == 0)
        return model_build_mlp(spec, name, widths, COUNT_OF(widths) - 1);
    if (strcmp(name, "tied") == 0)
        return build_tied(spec);
    return model_build(spec, name);
}

/* Runs @p base on its ranks. Fails unless all have the same; rank 0 gets the bytes of all. */
static zero_run train(const zero_run *base)
{
    char text[512], what[32];
    zero_run runs[RANKS_MAX] = {*base};
    configure(base, text);
    snprintf(what, sizeof what, "stage %d", base->stage);
    engine_ranks_run(&(engine_job){.config = text,
                                   .model = base->model,
                                   .build = build,
                                   .loss = LOSS_CROSS_ENTROPY,
                                   .samples = SAMPLES,
                                   .algorithm = base->algorithm,
                                   .work = work},
                     base->ranks, runs, sizeof runs[0]);
    engine_ranks_expect(base->ranks, runs, sizeof runs[0], what);
    for (int r = 0; r < base->ranks; r++) {
        assert_int_equal(runs[r].params_hash, runs[0].params_hash);
        assert_memory_equal(runs[r].losses, runs[0].losses, sizeof runs[0].losses);
        assert_int_equal(runs[r].state_bytes, runs[0].state_bytes);
        assert_true(runs[r].timed);
        assert_true(runs[r].accuracy == runs[0].accuracy);
        runs[0].update_bytes += r > 0 ? runs[r].update_bytes : 0;
    }
    return runs[0];
}

#define ADAM "{type: \"Adam\", params: {lr: 0.001, weight_decay: 0.01}}"
#define PLAIN_SGD "{type: \"SGD\", params: {lr: 0.01}}"

static void expect_same(const zero_run *got, const zero_run *want)
{
    if (got->params_hash != want->params_hash)
        fail_msg("%s, %d ranks, %s: stage %d differs from stage %d in its parameters", got->model,
                 got->ranks, got->algorithm, got->stage, want->stage);
    assert_memory_equal(got->losses, want->losses, sizeof got->losses);
    assert_memory_equal(got->norms, want->norms, sizeof got->norms);
    assert_true(got->accuracy == want->accuracy);
}

/* Where parameters come and go, and are cast for nodes: also within a bucket, and over several. */
static void computing_activations_again_changes_no_bit(void **state)
{
    static const struct {
        const char *model, *precision;
        int stage;
    } cases[] = {{"deep", "", 2},
                 {"deep", "", 3},
                 {"tied", "", 3},
                 {"deep", "bf16: {enabled: true}", 0},
                 {"lenet5", "fp16: {enabled: true, initial_scale_power: 20}", 1},
                 {"deep", "bf16: {enabled: true}, data_types: {grad_accum_dtype: \"bf16\"}", 1},
                 {"deep", "bf16: {enabled: true}", 3},
                 {"tied", "fp16: {enabled: true, initial_scale_power: 20}", 3}};
    static const int intervals[] = {1, 3, 5};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        zero_run run = {.ranks = 2,
                        .stage = cases[c].stage,
                        .accumulation = 3,
                        .model = cases[c].model,
                        .optimizer = ADAM,
                        .algorithm = "ring",
                        .precision = cases[c].precision};
        const zero_run kept = train(&run);
        for (size_t i = 0; i < COUNT_OF(intervals); i++) {
            char keys[256];
            snprintf(keys, sizeof keys, "pipeline: {activation_checkpoint_interval: %d}, %s",
                     intervals[i], cases[c].precision);
            run.precision = keys;
            const zero_run again = train(&run);
            expect_same(&again, &kept);
            if (cases[c].stage < 3)
                assert_int_equal(again.update_bytes, kept.update_bytes);
        }
    }
}

static void without_accumulation_all_stages_are_the_same_bit_for_bit(void **state)
{
    static const struct {
        const char *model, *algorithm;
        int ranks;
    } cases[] = {{"mlp", "ring", 1},    {"mlp", "ring", 2},    {"mlp", "ring", 4},
                 {"mlp", "direct", 4},  {"lenet5", "ring", 4}, {"lenet5", "direct", 3},
                 {"mlp", "oneshot", 3}, {"deep", "ring", 4},   {"deep", "direct", 3}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        zero_run runs[STAGES];
        for (int stage = 0; stage < STAGES; stage++)
            runs[stage] = train(&(zero_run){.ranks = cases[c].ranks,
                                            .stage = stage,
                                            .accumulation = 1,
                                            .model = cases[c].model,
                                            .optimizer = ADAM,
                                            .algorithm = cases[c].algorithm});
        assert_true(runs[0].losses[3] != runs[0].losses[0]); /* the same samples, later */
        for (int stage = 1; stage < STAGES; stage++)
            expect_same(&runs[stage], &runs[0]);
    }
}

/* Stages 0 and 1 sum, then reduce; 2 and 3 reduce, then sum. @param within  of losses of those. */
static void check_pairs(int ranks, const char *precision, double within)
{
    zero_run runs[STAGES];
    for (int stage = 0; stage < STAGES; stage++)
        runs[stage] = train(&(zero_run){.ranks = ranks,
                                        .stage = stage,
                                        .accumulation = 4,
                                        .model = "mlp",
                                        .optimizer = PLAIN_SGD,
                                        .precision = precision,
                                        .algorithm = "ring"});
    assert_true(runs[0].losses[3] != runs[0].losses[0]); /* the same samples, later */
    expect_same(&runs[1], &runs[0]);
    expect_same(&runs[3], &runs[2]);
    for (int u = 0; u < UPDATES; u++)
        assert_near(runs[2].losses[u], runs[0].losses[u], within, 0);
}

static void with_accumulation_stages_are_the_same_in_pairs(void **state)
{
    for (int ranks = 1; ranks <= 4; ranks *= 2)
        check_pairs(ranks, NULL, 1e-6);
}

#define FP16 "fp16: {enabled: true}"
/* No overflow, which ranks would report to each other. */
#define FP16_FIXED "fp16: {enabled: true, loss_scale: 128}"
#define BF16 "bf16: {enabled: true}"

/* Skipped updates, too: the scale starts above what fp16 holds. */
static void in_16_bits_all_stages_are_the_same_bit_for_bit(void **state)
{
    static const struct {
        const char *precision, *model, *algorithm;
        int ranks;
    } cases[] = {
        {FP16, "mlp", "ring", 1},
        {"fp16: {enabled: true, initial_scale_power: 24, hysteresis: 1}", "deep", "ring", 2},
        {BF16, "deep", "direct", 4},
        {BF16, "lenet5", "ring", 3},
        {"amp: {enabled: true, opt_level: \"O3\"}", "deep", "ring", 3},
        {FP16 ", communication_data_type: \"fp32\"", "deep", "ring", 3},
        {BF16 ", data_types: {grad_accum_dtype: \"fp32\"}", "deep", "direct", 3},
        {"communication_data_type: \"bf16\"", "deep", "ring", 3},
    };
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        zero_run runs[STAGES];
        for (int stage = 0; stage < STAGES; stage++) {
            if (stage > 0 && strncmp(cases[c].precision, "amp", 3) == 0)
                continue; /* refused, as in DeepSpeed */
            runs[stage] = train(&(zero_run){.ranks = cases[c].ranks,
                                            .stage = stage,
                                            .accumulation = 1,
                                            .model = cases[c].model,
                                            .optimizer = ADAM,
                                            .precision = cases[c].precision,
                                            .algorithm = cases[c].algorithm});
            assert_true(runs[0].losses[UPDATES - 1] != runs[0].losses[2]);
            expect_same(&runs[stage], &runs[0]);
        }
    }
}

/* Rounded to 16 bits before or after they are summed. */
static void with_accumulation_in_16_bits_too(void **state)
{
    for (int ranks = 1; ranks <= 4; ranks *= 2)
        check_pairs(ranks, ranks == 2 ? FP16_FIXED : BF16, 1e-3);
}

#define WHOLE(elements) "stage3_param_persistence_threshold: " #elements

/* Some, or all, tensors stay whole; tensors of both kinds in a layer, and tied ones. */
static void tensors_that_stay_whole_change_no_bit(void **state)
{
    static const struct {
        const char *model, *zero, *precision;
        int ranks;
    } cases[] = {{"mlp", WHOLE(1e5), NULL, 4},
                 {"deep", WHOLE(0) ", stage3_max_live_parameters: 1", NULL, 2},
                 {"deep", WHOLE(16637) ", sub_group_size: 100", NULL, 3},
                 {"deep", WHOLE(200) ", stage3_prefetch_bucket_size: 0", FP16_FIXED, 3},
                 {"deep", WHOLE(1e6), BF16, 2},
                 {"deep", WHOLE(1e6) ", stage3_model_persistence_threshold: 1000", NULL, 3},
                 {"tied", WHOLE(200), NULL, 2},
                 {"tied", WHOLE(40000), BF16, 2},
                 {"tied", WHOLE(1e6), NULL, 2}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        zero_run runs[STAGES];
        for (int stage = 0; stage < STAGES; stage++) {
            runs[stage] = train(&(zero_run){.ranks = cases[c].ranks,
                                            .stage = stage,
                                            .accumulation = 1,
                                            .model = cases[c].model,
                                            .optimizer = ADAM,
                                            .precision = cases[c].precision,
                                            .zero = cases[c].zero,
                                            .algorithm = "ring"});
            expect_same(&runs[stage], &runs[0]);
        }
        zero_run split = runs[0];
        split.zero = NULL;
        split.params_hash = 0;
        split = train(&split);
        for (int u = 0; u < UPDATES; u++)
            assert_near(runs[0].losses[u], split.losses[u],
                        cases[c].precision != NULL ? 5e-4 : 1e-6, 0);
        assert_true(runs[0].losses[3] != runs[0].losses[0]); /* the same samples, later */
    }
}

static void other_collectives_change_no_bit(void **state)
{
    static const char *const keys[] = {"reduce_scatter: false", "allgather_partitions: false"};
    for (size_t k = 0; k < 2 * COUNT_OF(keys); k++) {
        zero_run run = {.ranks = 3,
                        .stage = 1 + (int)(k / 2),
                        .accumulation = 2,
                        .model = "deep",
                        .optimizer = ADAM,
                        .precision = k == 2 ? BF16 : NULL,
                        .algorithm = "ring"};
        const zero_run usual = train(&run);
        char text[128];
        snprintf(text, sizeof text, WHOLE(0) ", %s", keys[k % 2]);
        run.zero = text;
        const zero_run other = train(&run);
        expect_same(&other, &usual);
    }
}

/* Of Ψ parameters, summed over n ranks, an update of a micro-batches sends elements
 *     stages 0 and 1  2 (n - 1) Ψ          gradients once; once back, or the parameters
 *     stage 2         (a + 1) (n - 1) Ψ    gradients of each micro-batch; the parameters
 *     stage 3         3 a (n - 1) Ψ        parameters forward, parameters backward, gradients */
static uint64_t wire_bytes(const zero_run *run, size_t element)
{
    const uint64_t a = (uint64_t)run->accumulation, n = (uint64_t)run->ranks;
    const uint64_t times[STAGES] = {2, 2, a + 1, 3 * a};
    return UPDATES * times[run->stage] * (n - 1) * run->padded * element;
}

/* Bytes of a parameter: itself, its gradient, and master and states; each whole or a part. */
static size_t model_bytes(const zero_run *run, size_t element, size_t states)
{
    const size_t n = (size_t)run->ranks, all = run->padded, own = all / n;
    const size_t bytes[STAGES] = {(2 * element + states) * all, 2 * element * all + states * own,
                                  element * all + (element + states) * own,
                                  (2 * element + states) * own};
    return bytes[run->stage];
}

/* @param live  bytes that are there beside, for each element of the largest bucket; one rank shares
 * nothing and needs what stage 0 needs. */
static void check_bytes(const zero_run *base, size_t element, size_t adams, const size_t *live)
{
    const bool adam = strstr(base->optimizer, "Adam") != NULL;
    const zero_run run = train(base);
    assert_in_range(run.padded, 218058, 218058 + 2 * (size_t)run.ranks - 1);
    assert_int_equal(run.padded % (size_t)run.ranks, 0);
    assert_int_equal(run.update_bytes, wire_bytes(&run, element));
    assert_int_equal(run.state_bytes, model_bytes(&run, element, adam ? adams : adams - 8));
    assert_int_equal(run.live_bytes, live[run.ranks > 1 ? run.stage : 0] * run.largest);
}

/* All combinations in a long run, otherwise one in eight, drawn. */
static bool is_left_out(void)
{
    static uint64_t state;
    if (state == 0)
        state = test_seed();
    return !test_is_long() && test_draw(&state, 8) != 0;
}

static void bytes_are_those_of_the_formulas(void **state)
{
    static const size_t live[STAGES] = {0, 0, 2 * 4, 4 * 4};
    for (int ranks = 1; ranks <= 4; ranks++) {
        for (int c = 0; c < 16; c++) {
            const int stage = c / 4, accumulation = c & 2 ? 4 : 1;
            if (is_left_out())
                continue;
            check_bytes(&(zero_run){.ranks = ranks,
                                    .stage = stage,
                                    .accumulation = accumulation,
                                    .model = "mlp",
                                    .optimizer = c & 1 ? ADAM : PLAIN_SGD,
                                    .algorithm = "ring"},
                        4, 8, live);
        }
    }
}

/* Adam: 16 Ψ, 4 Ψ + 12 Ψ/n, 2 Ψ + 14 Ψ/n and 16 Ψ/n. Algorithms are those that are chosen. */
static void bytes_in_16_bits_are_those_of_the_formulas(void **state)
{
    /* float32 copies of parameters and gradients; gradients that travel; gathered parameters */
    static const size_t live[STAGES] = {2 * 8, 2 * 8, 2 * 10, 2 * 12};
    for (int ranks = 1; ranks <= 4; ranks++) {
        for (int c = 0; c < 32; c++) {
            const int stage = c / 8;
            if (is_left_out())
                continue;
            check_bytes(&(zero_run){.ranks = ranks,
                                    .stage = stage,
                                    .accumulation = c & 2 ? 4 : 1,
                                    .model = "mlp",
                                    .optimizer = c & 1 ? ADAM : PLAIN_SGD,
                                    .precision = c & 4 ? FP16_FIXED : BF16,
                                    .algorithm = ""},
                        2, 12, live);
        }
    }
}

/* Of the MLP's tensors only the first has more than 100 000 elements. */
static void what_stays_whole_is_gathered_once(void **state)
{
    for (int c = 0; c < 4; c++) {
        const bool all = c & 1;
        const uint64_t n = 2 + (c == 2), a = c & 2 ? 3 : 1;
        const zero_run run = train(&(zero_run){.ranks = (int)n,
                                               .stage = 3,
                                               .accumulation = (int)a,
                                               .model = "mlp",
                                               .optimizer = ADAM,
                                               .zero = all ? WHOLE(1e6) : WHOLE(1e5),
                                               .algorithm = "ring"});
        const uint64_t split = all ? 0 : (200704 + n - 1) / n * n, whole = run.padded - split;
        assert_int_equal(run.update_bytes,
                         UPDATES * (n - 1) * 4 * (3 * a * split + (a + 1) * whole));
        assert_int_equal(run.state_bytes, 4 * (whole + split / n) + 12 * (run.padded / n));
        assert_int_equal(run.live_bytes, 2 * 4 * (run.largest + split));
    }
}

/* All-reduce instead of reduce-scatter: 3 Ψ; broadcasts send as much as a gather. */
static void other_collectives_send_what_they_must(void **state)
{
    for (int stage = 1; stage <= 2; stage++) {
        zero_run base = {.ranks = 3,
                         .stage = stage,
                         .accumulation = 1,
                         .model = "mlp",
                         .optimizer = PLAIN_SGD,
                         .zero = "reduce_scatter: false",
                         .algorithm = "ring"};
        const zero_run summed = train(&base);
        assert_int_equal(summed.update_bytes, UPDATES * 3 * 2 * 4 * summed.padded);
        base.zero = "allgather_partitions: false";
        const zero_run sent = train(&base);
        assert_int_equal(sent.update_bytes, UPDATES * 2 * 2 * 4 * sent.padded);
    }
}

/* Tied tensors of other buckets are read and added to in place: float32 copies stay. */
static void shared_parameters_train_in_16_bits(void **state)
{
    for (int ranks = 1; ranks <= 2; ranks++) {
        zero_run runs[2];
        for (int stage = 0; stage < 2; stage++)
            runs[stage] = train(&(zero_run){.ranks = ranks,
                                            .stage = stage,
                                            .accumulation = 2,
                                            .model = "tied",
                                            .optimizer = PLAIN_SGD,
                                            .precision = BF16,
                                            .algorithm = "ring"});
        const zero_run exact = train(&(zero_run){.ranks = ranks,
                                                 .accumulation = 2,
                                                 .model = "tied",
                                                 .optimizer = PLAIN_SGD,
                                                 .algorithm = "ring"});
        expect_same(&runs[1], &runs[0]);
        assert_int_equal(runs[0].live_bytes, 8 * runs[0].live);
        for (int u = 0; u < UPDATES; u++)
            assert_near(runs[0].losses[u], exact.losses[u], 2e-3, 0);
    }
}

/* Sums over ranks and micro-batches are made in two orders: of stages 0 and 1, and of 2 and 3. */
static void shared_parameters_train_in_all_stages(void **state)
{
    static const char *const precisions[] = {NULL, BF16, FP16_FIXED};
    for (size_t p = 0; p < COUNT_OF(precisions); p++) {
        for (int accumulation = 1; accumulation <= 3; accumulation += 2) {
            zero_run runs[STAGES];
            for (int stage = 0; stage < STAGES; stage++)
                runs[stage] = train(&(zero_run){.ranks = 2,
                                                .stage = stage,
                                                .accumulation = accumulation,
                                                .model = "tied",
                                                .optimizer = accumulation == 1 ? ADAM : PLAIN_SGD,
                                                .precision = precisions[p],
                                                .algorithm = "ring"});
            expect_same(&runs[1], &runs[0]);
            expect_same(&runs[3], &runs[2]);
            if (accumulation == 1)
                expect_same(&runs[2], &runs[0]);
            for (int u = 0; u < UPDATES; u++)
                assert_near(runs[2].losses[u], runs[0].losses[u], p == 0 ? 1e-6 : 2e-3, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computing_activations_again_changes_no_bit),
        cmocka_unit_test(without_accumulation_all_stages_are_the_same_bit_for_bit),
        cmocka_unit_test(with_accumulation_stages_are_the_same_in_pairs),
        cmocka_unit_test(in_16_bits_all_stages_are_the_same_bit_for_bit),
        cmocka_unit_test(with_accumulation_in_16_bits_too),
        cmocka_unit_test(bytes_are_those_of_the_formulas),
        cmocka_unit_test(bytes_in_16_bits_are_those_of_the_formulas),
        cmocka_unit_test(tensors_that_stay_whole_change_no_bit),
        cmocka_unit_test(other_collectives_change_no_bit),
        cmocka_unit_test(what_stays_whole_is_gathered_once),
        cmocka_unit_test(other_collectives_send_what_they_must),
        cmocka_unit_test(shared_parameters_train_in_16_bits),
        cmocka_unit_test(shared_parameters_train_in_all_stages),
    };
    return cmocka_run_group_tests(tests, draw_dataset, free_dataset);
}
