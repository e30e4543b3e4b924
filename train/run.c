/* SPDX-License-Identifier: Apache-2.0
 * Setting up (every phase ends with all ranks agreeing that it worked), the loop over
 * epochs and updates, and what is left behind at the end. */
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "clock.h"
#include "config.h"
#include "dataset.h"
#include "engine.h"
#include "errors.h"
#include "gemm.h"
#include "report.h"
#include "safetensors.h"
#include "sampler.h"
#include "schedule.h"

/* The network of --model mlp. */
static const size_t mlp_widths[] = {784, 256, 64, DATASET_CLASSES};
enum { MLP_LAYERS = sizeof mlp_widths / sizeof mlp_widths[0] - 1 };

typedef struct train_state {
    const run_options *options;
    ring_comm *comm;
    int ranks, rank;
    bool training; /* setting up is over */
    train_config config;
    train_dataset train, test;
    train_sampler sampler;
    train_engine engine;
    train_report report;
    size_t window;        /* samples of an update on one rank */
    size_t epoch_samples; /* samples of an epoch on one rank */
    long step;
} train_state;

static void print_note(void *context, const char *text)
{
    const train_state *state = context;
    if (state->rank == 0)
        printf("NOTE %s\n", text);
}

static void note_ignored(train_state *state)
{
    if (state->options->deepspeed_given)
        print_note(state, "--deepspeed has no effect: there is no other engine");
    if (state->options->local_rank_given)
        print_note(state, "--local_rank has no effect: the launcher's environment says it");
    if (state->options->compat_ds_0_13)
        print_note(state, "--compat ds-0.13: no clipping unless the configuration asks, the "
                          "first update at optimizer.params.lr, one sample order for all epochs");
}

static ring_status read_config(train_state *state)
{
    note_ignored(state);
    const config_options options = {.warn_unknown = state->options->warn_unknown,
                                    .compat_ds_0_13 = state->options->compat_ds_0_13};
    ring_comm_info info = {.size = sizeof info};
    RING_TRY(train_ring(state->comm, ring_comm_get_info(state->comm, &info)));
    RING_TRY(config_read(state->options->config_path, &options, print_note, state,
                         &state->config));
    return config_resolve_batch(&state->config, state->ranks,
                                info.launcher[0] != '\0' ? info.launcher : "no launcher");
}

static ring_status read_data(train_state *state)
{
    const char *folder = state->options->data;
    RING_TRY(dataset_read(folder, DATASET_TRAIN, &state->train));
    RING_TRY(dataset_read(folder, DATASET_TEST, &state->test));
    if (state->train.features != mlp_widths[0] || state->test.features != mlp_widths[0])
        return train_fail(RING_ERR_CONFIG,
                          "%s: images of %zu and %zu pixels, but the model mlp takes %zu",
                          folder, state->train.features, state->test.features, mlp_widths[0]);
    return RING_OK;
}

/* Micro-batches are cut from each rank's samples of an epoch, updates from those; the last
 * of each may be short. */
static ring_status plan_epoch(train_state *state)
{
    const train_config *config = &state->config;
    const size_t micro = (size_t)config->micro_batch;
    RING_TRY(sampler_create(&state->sampler, state->train.count, state->ranks, state->rank,
                            state->options->seed));
    state->window = micro * (size_t)config->accumulation;
    state->epoch_samples = state->sampler.per_rank;
    if (config->drop_last)
        state->epoch_samples -= state->epoch_samples % micro;
    if (state->epoch_samples == 0)
        return train_fail(RING_ERR_CONFIG,
                          "dataloader_drop_last leaves nothing: %zu samples a rank are less "
                          "than a micro-batch of %zu", state->sampler.per_rank, micro);
    return RING_OK;
}

static ring_status open_report(train_state *state)
{
    const size_t updates = (state->epoch_samples + state->window - 1) / state->window;
    return report_open(&state->report, state->rank == 0, &state->config,
                       state->options->metrics_path, state->options->epochs, (long)updates);
}

static void print_start(train_state *state)
{
    if (state->rank != 0)
        return;
    printf("training mlp 784-256-64-10 (%zu parameters, loss %s) on %zu samples, testing on "
           "%zu, with %d rank%s; layers by %s\n", state->engine.model.param_count,
           loss_name(state->options->loss), state->train.count, state->test.count,
           state->ranks, state->ranks == 1 ? "" : "s", gemm_library());
    config_print(&state->config, state->config.dump_state, stdout);
    if (sampler_repeated(&state->sampler) > 0)
        printf("%zu/%d ranks: %zu samples seen twice an epoch\n", state->train.count,
               state->ranks, sampler_repeated(&state->sampler));
    fflush(stdout);
}

static ring_status set_up(train_state *state)
{
    ring_comm *comm = state->comm;
    RING_TRY(agree(comm, read_config(state)));
    RING_TRY(agree(comm, read_data(state)));
    RING_TRY(agree(comm, plan_epoch(state)));
    RING_TRY(agree(comm, open_report(state)));
    RING_TRY(engine_create(&state->engine, comm, &state->config, state->options->loss,
                           mlp_widths, MLP_LAYERS, state->options->seed));
    print_start(state);
    return RING_OK;
}

static double lr_of(const train_state *state, long update)
{
    return schedule_lr(&state->config.schedule, state->config.optimizer.lr, update,
                       state->options->compat_ds_0_13);
}

static ring_status update(train_state *state, int epoch, size_t begin, size_t samples)
{
    engine_result result;
    const double lr = lr_of(state, state->step + 1), start = train_now();
    RING_TRY(engine_update(&state->engine, &state->train, state->sampler.order + begin,
                           samples, lr, &result));
    const double end = train_now();
    const size_t micro = (size_t)state->config.micro_batch;
    state->step++;
    if (state->step == 1)
        report_line(&state->report, "first update done %.3f s after the start",
                    end - state->options->started);
    report_update(&state->report,
                  &(report_step){.step = state->step, .epoch = epoch, .loss = result.loss,
                                 .grad_norm = result.grad_norm, .lr = lr,
                                 .next_lr = lr_of(state, state->step + 1),
                                 .samples = (long)result.samples,
                                 .micro_batches = (long)((samples + micro - 1) / micro),
                                 .seconds = end - start});
    return RING_OK;
}

static bool is_over(const train_state *state)
{
    return state->options->max_steps > 0 && state->step >= state->options->max_steps;
}

/* DeepSpeed 0.13's loader never moves its sampler on: every epoch has the first's order. */
static void shuffle(train_state *state, int epoch)
{
    const bool constant = state->options->compat_ds_0_13;
    sampler_set_epoch(&state->sampler, constant ? 0 : (uint64_t)epoch - 1);
}

static ring_status train_epoch(train_state *state, int epoch, double *accuracy)
{
    const double start = train_now();
    size_t begin = 0;
    shuffle(state, epoch);
    while (begin < state->epoch_samples && !is_over(state)) {
        const size_t left = state->epoch_samples - begin;
        const size_t samples = left < state->window ? left : state->window;
        RING_TRY(update(state, epoch, begin, samples));
        begin += samples;
    }
    const double trained = train_now();
    RING_TRY(engine_accuracy(&state->engine, &state->test, accuracy));
    report_line(&state->report,
                "epoch %d: test accuracy %.4f, %.0f samples/s, %.2f s, then %.2f s of testing",
                epoch, *accuracy, (double)(begin * (size_t)state->ranks) / (trained - start),
                trained - start, train_now() - trained);
    return RING_OK;
}

static ring_status dump(const train_state *state)
{
    if (state->options->dump_path == NULL)
        return RING_OK;
    return safetensors_write(state->options->dump_path, state->rank, &state->engine.model,
                             state->engine.params);
}

static ring_status train(train_state *state)
{
    double accuracy = 0.0;
    for (int epoch = 1; epoch <= state->options->epochs && !is_over(state); epoch++)
        RING_TRY(train_epoch(state, epoch, &accuracy));
    RING_TRY(agree(state->comm, dump(state)));
    RING_TRY(agree(state->comm, report_close(&state->report)));
    report_line(&state->report, "test accuracy %.4f", accuracy);
    return RING_OK;
}

static ring_status run_all(train_state *state)
{
    RING_TRY(train_ring(NULL, ring_comm_init_env(&state->comm)));
    state->ranks = ring_comm_size(state->comm);
    state->rank = ring_comm_rank(state->comm);
    RING_TRY(set_up(state));
    state->training = true;
    return train(state);
}

static void tear_down(train_state *state)
{
    report_close(&state->report);
    engine_destroy(&state->engine);
    sampler_destroy(&state->sampler);
    dataset_free(&state->train);
    dataset_free(&state->test);
    ring_comm_destroy(state->comm);
}

/* Ranks are the parallelism: one thread each, unless the user asks for more. */
static int wanted_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    const int threads = text != NULL ? atoi(text) : 1;
    return threads > 0 ? threads : 1;
}

int run(const run_options *options)
{
    train_state state = {.options = options};
    gemm_set_threads(wanted_threads());
    const ring_status status = run_all(&state);
    const bool told_elsewhere = state.comm != NULL && !state.training && state.rank != 0;
    char text[TRAIN_ERROR_MAX];
    snprintf(text, sizeof text, "%s", train_error()); /* tearing down may fail too */
    tear_down(&state);
    if (status == RING_OK)
        return EXIT_SUCCESS;
    if (!told_elsewhere)
        fprintf(stderr, "ringtrain: %s\n", text);
    return EXIT_FAILURE;
}
