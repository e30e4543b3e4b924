/* SPDX-License-Identifier: Apache-2.0
 * Whole updates through the engine on a communicator of one rank, against PyTorch's losses
 * and gradient norms on the same drawn data; and engines of several ranks, as threads,
 * against that. */
#include "check.h"
#include "drawn.h"
#include "engine_ranks.h"
#include "vectors.h"

#include <errors.h>
#include <sampler.h>
#include <schedule.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 320, BATCH = 32, EPOCHS = 6, UPDATES = EPOCHS * SAMPLES / BATCH };

static train_dataset dataset; /* "synthetic" of make_vectors.py */

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

/* Results of one rank of a run. */
typedef struct trained {
    engine_rank on;
    double losses[UPDATES], norms[UPDATES];
    double accuracy;
    size_t max_batch;
    bool skips_norm;
    uint64_t params_hash;
} trained;

static ring_status train_epochs(trained *out, train_engine *engine)
{
    const train_config *config = engine->config;
    train_sampler sampler;
    RING_TRY(sampler_create(&sampler, SAMPLES, out->on.ranks, out->on.rank, &(sampler_rule){0}));
    const size_t window = (size_t)(config->micro_batch * config->accumulation);
    ring_status status = RING_OK;
    long step = 0;
    for (uint64_t epoch = 0; epoch < EPOCHS && status == RING_OK; epoch++) {
        sampler_set_epoch(&sampler, epoch);
        for (size_t at = 0; at < sampler.per_rank && status == RING_OK; at += window) {
            engine_result result = {0};
            const double lr = schedule_lr(&config->schedule, config->optimizer.lr, step + 1, false);
            const size_t left = sampler.per_rank - at;
            status = engine_update(engine, &dataset, sampler.order + at,
                                   left < window ? left : window, lr, &result);
            out->losses[step] = result.loss;
            out->norms[step++] = result.grad_norm;
        }
    }
    sampler_destroy(&sampler);
    return status;
}

static ring_status evaluate(train_engine *engine, double *accuracy)
{
    engine_score score = {0};
    const ring_status status = engine_evaluate(engine, &dataset, &score);
    *accuracy = score.accuracy;
    return status;
}

static ring_status work(train_engine *engine, void *rank)
{
    trained *out = rank;
    engine->skips_norm = out->skips_norm;
    out->max_batch = engine->model.max_batch;
    RING_TRY(train_epochs(out, engine));
    RING_TRY(evaluate(engine, &out->accuracy));
    return engine_params_hash(engine, &out->params_hash);
}

/* Trains as @p ranks threads. @return what each saw, to be free()d. */
static trained *train_ranks_with(int ranks, const char *config, loss_kind loss, bool skips_norm)
{
    trained *out = calloc((size_t)ranks, sizeof *out);
    assert_non_null(out);
    out->skips_norm = skips_norm;
    engine_ranks_run(&(engine_job){.config = config,
                                   .model = "mlp",
                                   .loss = loss,
                                   .samples = SAMPLES / (size_t)ranks,
                                   .work = work},
                     ranks, out, sizeof *out);
    return out;
}

static trained *train_ranks(int ranks, const char *config, loss_kind loss)
{
    return train_ranks_with(ranks, config, loss, false);
}

#define CHECK_RUN(config, loss, name, tolerance) \
    check_run(config, loss, vector_doubles("training/" name "_losses", UPDATES), \
              vector_doubles("training/" name "_norms", UPDATES), tolerance)
static void check_run(const char *config, loss_kind loss, const double *losses, const double *norms,
                      double tolerance)
{
    trained *got = train_ranks(1, config, loss);
    if (got->on.status != RING_OK)
        fail_msg("%s", got->on.error);
    for (size_t i = 0; i < UPDATES; i++) {
        assert_near(got->losses[i], losses[i], 1e-5, 0);
        assert_near(got->norms[i], norms[i], tolerance, 0);
    }
    free(got);
}

#define SGD_CONFIG \
    "{train_batch_size: 32, gradient_clipping: 0, optimizer: {type: \"SGD\", params: {lr: " \
    "0.01}}, scheduler: {type: \"WarmupDecayLR\", params: {warmup_min_lr: 1e-4, " \
    "warmup_max_lr: 0.1, warmup_num_steps: 20, total_num_steps: 50, warmup_type: " \
    "\"linear\"}}}"

static void sgd_with_warmup_decay_loses_as_pytorch(void **state)
{
    CHECK_RUN(SGD_CONFIG, LOSS_MSE, "sgd", 1e-4);
}

static void momentum_with_clipping_loses_as_pytorch(void **state)
{
    CHECK_RUN("{train_batch_size: 32, gradient_clipping: 0.5, optimizer: {type: \"SGD\", params: "
              "{lr: 0.01, momentum: 0.9, weight_decay: 1e-3, nesterov: true}}}",
              LOSS_CROSS_ENTROPY, "momentum", 1e-4);
}

static void adam_with_l2_loses_as_pytorch(void **state)
{
    CHECK_RUN("{train_batch_size: 32, gradient_clipping: 0, optimizer: {type: \"Adam\", params: "
              "{lr: 1e-4, weight_decay: 1e-2, adam_w_mode: false}}}",
              LOSS_CROSS_ENTROPY, "adam", 1e-3);
}

static void adamw_loses_as_pytorch(void **state)
{
    CHECK_RUN("{train_batch_size: 32, optimizer: {type: \"AdamW\", params: {lr: 1e-4, betas: [0.8, "
              "0.99], eps: 1e-7, weight_decay: 0.1}}}",
              LOSS_MSE, "adamw", 1e-3);
}

/* Stage 2 would otherwise sum squares over the ranks. */
#define ADAM_CLIPPED_BY(clip) \
    "{train_batch_size: 32, gradient_clipping: " clip \
    ", zero_optimization: {stage: 2}, optimizer: {type: \"Adam\", params: {lr: 1e-3}}}"

static void expect_runs_alike(const char *config, bool has_norm)
{
    trained *with = train_ranks(2, config, LOSS_MSE);
    trained *without = train_ranks_with(2, config, LOSS_MSE, true);
    assert_int_equal(with->on.status | without->on.status, RING_OK);
    assert_memory_equal(with->losses, without->losses, sizeof with->losses);
    assert_int_equal(with->params_hash, without->params_hash);
    for (size_t i = 0; i < COUNT_OF(with->norms); i++) {
        assert_true(with->norms[i] > 0);
        assert_int_equal(!isnan(without->norms[i]), has_norm);
    }
    free(with);
    free(without);
}

static void the_norm_is_left_out_where_nothing_needs_it(void **state)
{
    expect_runs_alike(ADAM_CLIPPED_BY("0"), false);
    expect_runs_alike(ADAM_CLIPPED_BY("0.5"), true);
}

/* Any number of ranks and micro-batches of one global batch takes the same steps. */
static void ranks_and_micro_batches_do_not_change_losses(void **state)
{
    static const struct {
        int ranks, micro;
    } splits[] = {{1, 8}, {2, 16}, {2, 4}, {4, 8}, {8, 1}};
    const double *losses = vector_doubles("training/sgd_losses", UPDATES);
    for (size_t s = 0; s < COUNT_OF(splits); s++) {
        char config[512];
        snprintf(config, sizeof config, "{train_micro_batch_size_per_gpu: %d, %s", splits[s].micro,
                 &SGD_CONFIG[1]);
        trained *got = train_ranks(splits[s].ranks, config, LOSS_MSE);
        for (int r = 0; r < splits[s].ranks; r++) {
            if (got[r].on.status != RING_OK)
                fail_msg("rank %d: %s", r, got[r].on.error);
            for (size_t i = 0; i < UPDATES; i++)
                assert_near(got[r].losses[i], losses[i], 1e-6, 0);
            assert_int_equal(got[r].params_hash, got[0].params_hash);
            assert_near(got[r].accuracy, got[0].accuracy, 0, 0);
        }
        free(got);
    }
}

/* But not smaller than the batches of the evaluation. */
static void buffers_are_as_large_as_a_ranks_samples(void **state)
{
    static const size_t max_batch[] = {SAMPLES, 256};
    for (int ranks = 1; ranks <= 2; ranks++) {
        trained *got = train_ranks(
            ranks, "{train_micro_batch_size_per_gpu: 300000, optimizer: {type: \"SGD\"}}",
            LOSS_MSE);
        assert_int_equal(got->on.status, RING_OK);
        assert_int_equal(got->max_batch, max_batch[ranks - 1]);
        free(got);
    }
}

/* The rate decides what overflows first: the loss of the second update, or its gradient. */
static void what_is_not_finite_stops_all_ranks_with_one_text(void **state)
{
    static const struct {
        const char *lr;
        bool skips_norm;
        const char *error, *update;
    } cases[] = {
        {"1e30", false, "the loss is ", "2"},
        {"1e11", false, "the gradient is not finite", "2"},
        {"1e11", true, "the loss is nan", "3"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char config[256], advice[100];
        snprintf(advice, sizeof advice,
                 " in update %s; lower the learning rate or set gradient_clipping",
                 cases[i].update);
        snprintf(config, sizeof config,
                 "{train_batch_size: 32, gradient_clipping: 0, optimizer: {type: \"SGD\", params: "
                 "{lr: %s}}}",
                 cases[i].lr);
        trained *got = train_ranks_with(2, config, LOSS_MSE, cases[i].skips_norm);
        for (int r = 0; r < 2; r++) {
            assert_int_equal(got[r].on.status, RING_ERR_USAGE);
            assert_ptr_equal(strstr(got[r].on.error, cases[i].error), got[r].on.error);
            assert_non_null(strstr(got[r].on.error, advice));
            assert_string_equal(got[r].on.error, got[0].on.error);
        }
        free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_with_warmup_decay_loses_as_pytorch),
        cmocka_unit_test(momentum_with_clipping_loses_as_pytorch),
        cmocka_unit_test(adam_with_l2_loses_as_pytorch),
        cmocka_unit_test(adamw_loses_as_pytorch),
        cmocka_unit_test(the_norm_is_left_out_where_nothing_needs_it),
        cmocka_unit_test(ranks_and_micro_batches_do_not_change_losses),
        cmocka_unit_test(buffers_are_as_large_as_a_ranks_samples),
        cmocka_unit_test(what_is_not_finite_stops_all_ranks_with_one_text),
    };
    return cmocka_run_group_tests(tests, draw_dataset, free_dataset);
}
