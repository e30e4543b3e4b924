/* SPDX-License-Identifier: Apache-2.0
 * One rank cannot load its samples: all ranks end the update, or the evaluation, with its error,
 * and nobody waits. Ranks are threads. */
#include "engine_ranks.h"

#include <stdio.h>
#include <string.h>

enum { MOST_RANKS = 4, FEATURES = 784, CLASSES = 10, ROWS = 24, TESTED = 600, BAD_RANK = 1 };

/* Arguments and results of one rank. */
typedef struct failing_rank {
    engine_rank on;
    const char *config;
    int ranks, workers;
    uint32_t missing; /* sample that rank BAD_RANK does not get */
    bool evaluates;
    bool shared;
    double loss; /* of an update in which all have their samples */
} failing_rank;

/* Labels that no network has are left where the sample is missing. */
static ring_status take(void *context, const uint32_t *order, size_t batch, float *inputs,
                        uint32_t *labels)
{
    const failing_rank *rank = context;
    for (size_t i = 0; i < batch; i++) {
        labels[i] = UINT32_MAX;
        if (rank->on.rank == BAD_RANK && order[i] == rank->missing)
            return train_fail(RING_ERR_SYSTEM, "no sample %u", order[i]);
        labels[i] = (uint32_t)(order[i] % CLASSES);
        for (size_t f = 0; f < FEATURES && inputs != NULL; f++)
            inputs[i * FEATURES + f] = (float)((order[i] + f) % 7) / 7.0F;
    }
    return RING_OK;
}

/* An update with the missing sample, which is dropped; then one without. */
static ring_status train(train_engine *engine, failing_rank *out, const train_dataset *dataset)
{
    uint32_t order[ROWS], others[ROWS];
    engine_result result;
    for (uint32_t i = 0; i < ROWS; i++) {
        order[i] = i;
        others[i] = i + ROWS;
    }
    const ring_status status = engine_update(engine, dataset, order, ROWS, 0.1, &result);
    out->shared = train_error_is_shared();
    if (status == RING_OK || engine->optimizer.step != 0)
        return RING_OK;
    RING_TRY(engine_update(engine, dataset, others, ROWS, 0.1, &result));
    out->loss = result.loss;
    return status;
}

static ring_status evaluate(train_engine *engine, failing_rank *out, const train_dataset *dataset)
{
    engine_score score;
    const ring_status status = engine_evaluate(engine, dataset, &score);
    out->shared = train_error_is_shared();
    return status;
}

static ring_status work(train_engine *engine, void *rank)
{
    static const data_source source = {.take = take};
    failing_rank *out = rank;
    const train_dataset dataset = {.count = TESTED,
                                   .features = FEATURES,
                                   .classes = CLASSES,
                                   .own_labels = 1,
                                   .hash = 1,
                                   .source = &source,
                                   .context = out};
    RING_TRY(engine_read_ahead(engine, out->workers));
    return out->evaluates ? evaluate(engine, out, &dataset) : train(engine, out, &dataset);
}

static void run_ranks(const failing_rank *what, failing_rank out[MOST_RANKS])
{
    out[0] = *what;
    engine_ranks_run(&(engine_job){.config = what->config,
                                   .model = "mlp",
                                   .loss = LOSS_CROSS_ENTROPY,
                                   .samples = ROWS,
                                   .work = work},
                     what->ranks, out, sizeof *out);
}

static void expect_same_failure(const failing_rank *what)
{
    failing_rank out[MOST_RANKS];
    char text[64];
    snprintf(text, sizeof text, "rank %d: no sample %u", BAD_RANK, what->missing);
    run_ranks(what, out);
    for (int r = 0; r < what->ranks; r++) {
        if (out[r].on.status != RING_ERR_SYSTEM || strcmp(out[r].on.error, text) != 0)
            fail_msg("%d ranks, %s: rank %d: %s", what->ranks, what->config, r, out[r].on.error);
        assert_true(out[r].shared);
        if (!what->evaluates && !(isfinite(out[r].loss) && out[r].loss > 0.0))
            fail_msg("%s: rank %d had loss %g in the next update", what->config, r, out[r].loss);
    }
}

#define CONFIG(more) \
    "{train_micro_batch_size_per_gpu: 8, gradient_accumulation_steps: 3, optimizer: {type: " \
    "\"Adam\"}" more "}"

static const struct {
    int ranks;
    const char *config;
} runs[] = {
    {3, CONFIG(", zero_optimization: {stage: 0}")},
    {3, CONFIG(", zero_optimization: {stage: 2, overlap_comm: false}")},
    {2, CONFIG(", zero_optimization: {stage: 3}")},
    {2, CONFIG(", pipeline: {stages: 2}")},
    {4, CONFIG(", pipeline: {stages: 2}, bf16: {enabled: true}")},
    {2, CONFIG(", tensor_parallel: {autotp_size: 2}")},
};

/* In the first, a middle and the last micro-batch. */
static void an_update_ends_on_all_ranks_alike(void **state)
{
    for (size_t r = 0; r < COUNT_OF(runs); r++) {
        for (uint32_t missing = 0; missing < ROWS; missing += 11)
            expect_same_failure(&(failing_rank){.ranks = runs[r].ranks,
                                                .config = runs[r].config,
                                                .missing = missing});
    }
}

static void readers_failures_are_told_alike(void **state)
{
    expect_same_failure(&(failing_rank){
        .ranks = runs[1].ranks, .config = runs[1].config, .missing = 11, .workers = 2});
}

static void an_evaluation_ends_on_all_ranks_alike(void **state)
{
    for (size_t r = 0; r < COUNT_OF(runs); r++) {
        const uint32_t rest = TESTED / 2 + 1; /* of rank 1 */
        expect_same_failure(&(failing_rank){.ranks = runs[r].ranks,
                                            .config = runs[r].config,
                                            .missing = runs[r].ranks == 3 ? TESTED / 3 : rest,
                                            .evaluates = true});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_ends_on_all_ranks_alike),
        cmocka_unit_test(readers_failures_are_told_alike),
        cmocka_unit_test(an_evaluation_ends_on_all_ranks_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
