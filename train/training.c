/* SPDX-License-Identifier: Apache-2.0
 * Setting up (every phase ends with all ranks agreeing that it worked), the loop over
 * epochs and updates, and what is left behind at the end. */
#include "training.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agree.h"
#include "builtin.h"
#include "clock.h"
#include "config.h"
#include "dataset.h"
#include "division.h"
#include "errors.h"
#include "estimate.h"
#include "gemm.h"
#include "layer_list.h"
#include "params_dump.h"
#include "pipeline_lines.h"
#include "run_events.h"
#include "run_saving.h"
#include "same.h"
#include "schedule.h"
#include "stop_signals.h"
#include "train_engine.h"

enum {
    LINES_AN_EPOCH = 10,
    SCORE_TEXT_MAX = 96,
    SIGNAL_EXIT = 128 /* and the signal, as shells say it */
};

typedef struct train_state {
    const run_options *options;
    ring_comm *comm;
    int ranks, rank;
    train_grid grid;
    train_config config;
    model_spec spec;
    train_dataset train, test;
    train_sampler sampler;
    train_engine engine;
    run_events events;
    loss_kind loss;
    output_file dump; /* of the parameters, if wanted */
    data_shares shares;
    int epochs;
    run_saving saving;
    char settings[SAME_TEXT_MAX]; /* those that checkpoints tell */
    long step;                    /* updates done */
    long micro_steps;             /* micro-batches of this rank in them */
    long first_step;              /* of those, before this start */
    int epoch;                    /* from 1 */
    size_t updates;               /* of it, since its start or this one's */
    int stopped;                  /* the signal that ended the run; 0: none */
    engine_score score;
} train_state;

static void print_note(void *context, const char *text)
{
    const train_state *state = context;
    if (state->rank == 0)
        printf("NOTE %s\n", text);
}

/* What users set for DeepSpeed and its libraries. */
static void note_variables(train_state *state)
{
    static const struct {
        const char *name, *why;
    } variables[] = {{"CUDA_VISIBLE_DEVICES", "ranks run on CPUs"},
                     {"DS_BUILD_OPS", "nothing is compiled at run time"},
                     {"UCX_TLS", "RING_TRANSPORT chooses how ranks talk"}};
    char text[128];
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i].name);
        snprintf(text, sizeof text, "%s has no effect: %s", variables[i].name, variables[i].why);
        if (value != NULL && value[0] != '\0')
            print_note(state, text);
    }
}

static void note_ignored(train_state *state)
{
    note_variables(state);
    if (state->options->deepspeed_given)
        print_note(state, "--deepspeed has no effect: there is no other engine");
    if (state->options->local_rank_given)
        print_note(state, "--local_rank has no effect: the launcher's environment says it");
    if (state->options->workers >= 0)
        print_note(state, "--workers has no effect: the data set is in memory");
    if (state->options->backend != NULL)
        print_note(state, "--backend has no effect: ranks talk through libring");
    if (state->options->compat_ds_0_13)
        print_note(state,
                   "--compat ds-0.13: no clipping unless the configuration asks, the first "
                   "update at optimizer.params.lr, one sample order for all epochs, the loss "
                   "scale's window counted from the overflow");
}

static ring_status resolve_batch(train_state *state, const char *launcher)
{
    train_config *config = &state->config;
    const train_grid *grid = &state->grid;
    const long before = config->accumulation;
    char text[128], from[128];
    snprintf(from, sizeof from, "%s: %d in %d stages", launcher, state->ranks, grid->stages);
    RING_TRY(config_resolve_batch(config, grid->shares, grid->stages > 1 ? from : launcher,
                                  state->options->policy));
    if (before == 0 || before == config->accumulation)
        return RING_OK;
    snprintf(text, sizeof text,
             "--batch-policy=keep-global: gradient_accumulation_steps %ld -> %ld", before,
             config->accumulation);
    print_note(state, text);
    return RING_OK;
}

static ring_status check_saving(const train_state *state)
{
    const run_options *options = state->options;
    if (state->config.pipeline.stages == 1 ||
        (options->save_dir == NULL && options->resume == NULL && options->init_path == NULL))
        return RING_OK;
    return train_fail(RING_ERR_UNSUPPORTED,
                      "--save, --resume and --init of pipelines are not supported yet by this "
                      "version: leave them out, or train without stages");
}

static ring_status check_pipeline(const train_config *config)
{
    if (config->pipeline.stages == 1 ||
        (!config->micro_batches.listed && config->data_partition.count == 0))
        return RING_OK;
    return train_fail(RING_ERR_UNSUPPORTED,
                      "ranks with batches or parts of the data of their own do not go with stages "
                      "of a pipeline yet: leave out the lists, or train without stages");
}

static ring_status resolve_ranks(train_state *state, const char *launcher)
{
    RING_TRY(config_resolve_stages(&state->config, state->options->stages, state->ranks, launcher));
    RING_TRY(check_saving(state));
    RING_TRY(check_pipeline(&state->config));
    state->grid = grid_place(state->ranks, state->rank, (int)state->config.pipeline.stages);
    return resolve_batch(state, launcher);
}

/* --batch_size is of all ranks of a host, as users of DistributedDataParallel give it. */
static ring_status share_batch(const train_state *state, int local_ranks, long *micro)
{
    const long batch = state->options->batch;
    *micro = batch / local_ranks;
    if (batch % local_ranks == 0)
        return RING_OK;
    return train_fail(RING_ERR_CONFIG,
                      "--batch_size %ld is for all ranks of this host, which are %d; give a "
                      "multiple of that",
                      batch, local_ranks);
}

static void note_processes(train_state *state)
{
    char text[256];
    if (state->config.processes == 0 || state->config.processes == state->ranks)
        return;
    snprintf(text, sizeof text,
             "num_processes is %ld, but there %s %d rank%s; ringrun --config_file starts %ld",
             state->config.processes, state->ranks == 1 ? "is" : "are", state->ranks,
             state->ranks == 1 ? "" : "s", state->config.processes);
    print_note(state, text);
}

static ring_status read_config(train_state *state)
{
    ring_comm_info info = {.size = sizeof info};
    config_options options = {.warn_unknown = state->options->warn_unknown,
                              .compat_ds_0_13 = state->options->compat_ds_0_13,
                              .accelerate = state->options->accelerate,
                              .fp16 = state->options->fp16,
                              .bf16 = state->options->bf16};
    note_ignored(state);
    RING_TRY(train_ring(state->comm, ring_comm_get_info(state->comm, &info)));
    const int local_ranks = state->options->check > 0 ? state->ranks : info.local_ranks;
    RING_TRY(share_batch(state, local_ranks, &options.micro_batch));
    RING_TRY(config_read(state->options->config_path, &options, print_note, state, &state->config));
    note_processes(state);
    if (state->options->check > 0)
        return resolve_ranks(state, "--check");
    return resolve_ranks(state, info.launcher[0] != '\0' ? info.launcher : "no launcher");
}

/* Text is for models that begin with words, and images are for the others. */
static ring_status check_kind(train_state *state)
{
    const char *folder = state->options->data, *model = state->spec.name;
    const size_t words = model_spec_words(&state->spec);
    const bool text = state->train.token_bytes > 0;
    const size_t needed = state->train.classes > state->test.classes ? state->train.classes
                                                                     : state->test.classes;
    if (state->loss == LOSS_KINDS)
        state->loss = text ? LOSS_CROSS_ENTROPY : LOSS_MSE;
    if (text && words == 0)
        return train_fail(RING_ERR_CONFIG,
                          "%s holds a text, but the model %s takes images; give --model gpt",
                          folder, model);
    if (!text && words > 0)
        return train_fail(
            RING_ERR_CONFIG,
            "%s holds images, but the model %s takes a text: train.bin and val.bin, or "
            "input.txt",
            folder, model);
    if (text && needed > words)
        return train_fail(
            RING_ERR_CONFIG,
            "%s: tokens up to %zu, but the model %s knows %zu words; give \"vocab_size\" "
            "in a model's file",
            folder, needed - 1, model, words);
    return RING_OK;
}

static ring_status read_data(train_state *state)
{
    const char *folder = state->options->data;
    RING_TRY(dataset_read(folder, DATASET_TRAIN, &state->train));
    RING_TRY(dataset_read(folder, DATASET_TEST, &state->test));
    RING_TRY(check_kind(state));
    const size_t wanted = shape_count(&state->spec.input);
    char input[SHAPE_TEXT_MAX];
    RING_TRY(dataset_cut(&state->train, wanted));
    RING_TRY(dataset_cut(&state->test, wanted));
    if (state->train.features != wanted || state->test.features != wanted)
        return train_fail(RING_ERR_CONFIG,
                          "%s: images of %zu and %zu numbers, but the model %s takes %zu: %s",
                          folder, state->train.features, state->test.features, state->spec.name,
                          wanted, shape_text(&state->spec.input, input));
    return RING_OK;
}

static bool is_file(const char *model)
{
    const size_t length = strlen(model);
    return length > 5 && strcmp(model + length - 5, ".json") == 0;
}

static ring_status read_model(train_state *state)
{
    const char *model = state->options->model;
    if (is_file(model))
        return layer_list_read(&state->spec, model);
    return model_build(&state->spec, model);
}

/* @return passes over the training set: as given, else as many as --max-steps takes. */
static int count_epochs(const run_options *options, long epoch_updates)
{
    if (options->epochs > 0 || options->max_steps == 0)
        return options->epochs > 0 ? options->epochs : 1;
    return (int)((options->max_steps + epoch_updates - 1) / epoch_updates);
}

/* Micro-batches are cut from each rank's samples of an epoch, updates from those; the last
 * of each may be short. */
static ring_status plan_epoch(train_state *state)
{
    RING_TRY(division_make(&state->config, state->train.count, state->grid.shares,
                           state->grid.share, state->options->seed, &state->shares,
                           &state->sampler));
    const long updates = (long)state->shares.updates;
    state->epochs = count_epochs(state->options, updates);
    if (state->config.steps_per_print == 0)
        state->config.steps_per_print = updates > LINES_AN_EPOCH ? updates / LINES_AN_EPOCH : 1;
    return RING_OK;
}

static void list_dataset(const char *name, const train_dataset *dataset, FILE *out)
{
    fprintf(out, "%s=%zu samples (hash %016" PRIx64 ")\n", name, dataset->count,
            dataset_hash(dataset));
}

static void list_saving(const run_options *options, FILE *out)
{
    fprintf(out, "--save=%.200s\n--save-every=%ld\n--resume=%.200s\n--init=%.200s\n",
            options->save_dir != NULL ? options->save_dir : "", options->save_every,
            options->resume != NULL ? options->resume : "",
            options->init_path != NULL ? options->init_path : "");
    fprintf(out, "--eval-every=%d\n", options->eval_every);
}

/* Whatever decides what an update computes, a line each. */
static ring_status list_settings(const train_state *state, char text[SAME_TEXT_MAX])
{
    const run_options *options = state->options;
    FILE *out = fmemopen(text, SAME_TEXT_MAX, "w");
    if (out == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory to compare the settings of ranks");
    fprintf(out,
            "--model=%s (%d layers, hash %016" PRIx64 ")\n--loss=%s\n--seed=%" PRIu64
            "\n--compat=%s\n--max-steps=%ld\n",
            state->spec.name, state->spec.count, model_spec_hash(&state->spec),
            loss_names[state->loss], options->seed, options->compat_ds_0_13 ? "ds-0.13" : "none",
            options->max_steps);
    config_list(&state->config, out);
    fprintf(out, "--epochs=%d\n--monitor-every=%ld\nmaths library=%s\n", state->epochs,
            options->events.monitor_every, gemm_library());
    list_saving(options, out);
    list_dataset("training data", &state->train, out);
    list_dataset("test data", &state->test, out);
    if (fclose(out) != 0)
        return train_fail(RING_ERR_INTERNAL, "the settings take more than %d bytes", SAME_TEXT_MAX);
    return RING_OK;
}

static ring_status compare_ranks(const train_state *state)
{
    char text[SAME_TEXT_MAX] = "";
    RING_TRY(agree(state->comm, list_settings(state, text)));
    return same_check(state->comm, text);
}

static long count_updates(const train_state *state)
{
    const long most = state->options->max_steps, all = state->epochs * (long)state->shares.updates;
    return most > 0 && most < all ? most : all;
}

/* Before hours of training, so that a path that cannot be written does not waste them. */
static ring_status open_outputs(train_state *state)
{
    const run_options *options = state->options;
    report_options wishes = options->report;
    wishes.append_metrics |= options->resume != NULL;
    const report_run run = {.config = &state->config,
                            .options = wishes,
                            .ranks = state->ranks,
                            .epochs = state->epochs,
                            .steps_per_epoch = (long)state->shares.updates,
                            .steps = count_updates(state)};
    RING_TRY(events_open(&state->events, state->comm, &run, &options->events));
    if (options->dump_path == NULL)
        return RING_OK;
    return params_dump_open(&state->dump, options->dump_path, state->rank);
}

/* With a pipeline stages differ: pipeline_lines_start() tells. */
static void print_zero(const train_engine *engine)
{
    if (engine->stage > 0 && engine->pipeline.place.stages == 1)
        printf("ZeRO stage %d: each rank holds %zu bytes of model state, and %zu of the buckets "
               "that it works on\n",
               engine->stage, engine_state_bytes(engine), zero_live_bytes(&engine->memory));
    else if (engine->stage == 0 && engine->config->zero_stage > 0)
        printf("ZeRO: one rank has nothing to split\n");
}

static void print_precision(const train_engine *engine)
{
    const precision_config *precision = &engine->config->precision;
    const char *params = precision_name(precision->params);
    const char *grads = precision_name(precision->grads), *wire = precision_name(precision->wire);
    if (precision->params != RING_FLOAT32 || precision->wire != RING_FLOAT32)
        printf("%s storage, fp32 arithmetic: parameters %s%s, gradients %s and sent as %s\n",
               params, params, precision->masters ? " with fp32 masters" : "", grads, wire);
}

/* What dump_state shows beside the settings. */
static void print_ranks(const train_state *state)
{
    ring_comm_info info = {.size = sizeof info};
    if (ring_comm_get_info(state->comm, &info) == RING_OK)
        printf("ranks: %d on %d host%s, started by %s, transport %s\n", info.ranks, info.hosts,
               info.hosts == 1 ? "" : "s", info.launcher[0] != '\0' ? info.launcher : "nobody",
               info.transport);
    partition_print(&state->engine.partition, stdout);
}

/* Then they wait for each other: every rank computes on one core at least. */
static void warn_of_many_ranks(const train_state *state)
{
    ring_comm_info info = {.size = sizeof info};
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (ring_comm_get_info(state->comm, &info) == RING_OK && info.local_ranks > cores)
        printf("NOTE %d ranks share the %ld core%s of this host: more ranks make it slower\n",
               info.local_ranks, cores, cores == 1 ? "" : "s");
}

static void print_start(train_state *state)
{
    if (state->rank != 0)
        return;
    printf("training %s (%zu parameters, loss %s) on %zu samples, testing on %zu, with %d rank%s; "
           "layers by %s\n",
           state->spec.name, model_parameters(engine_network(&state->engine)),
           loss_names[state->loss], state->train.count, state->test.count, state->ranks,
           state->ranks == 1 ? "" : "s", gemm_library());
    config_print(&state->config, state->config.dump_state, stdout);
    print_precision(&state->engine);
    print_zero(&state->engine);
    division_print(&state->config, &state->shares, state->train.count, stdout);
    warn_of_many_ranks(state);
    const size_t repeated = sampler_repeated(&state->sampler);
    if (repeated > 0)
        printf("%zu/%d ranks: %zu sample%s repeated an epoch\n", state->train.count,
               state->grid.shares, repeated, repeated == 1 ? "" : "s");
    if (state->config.dump_state)
        print_ranks(state);
    fflush(stdout);
}

static bool is_over(const train_state *state)
{
    return state->epoch > state->epochs ||
           (state->options->max_steps > 0 && state->step >= state->options->max_steps);
}

/* What an update computes follows from these, and from what must not change at all. */
static ring_status describe_run(train_state *state)
{
    FILE *out = fmemopen(state->settings, sizeof state->settings, "w");
    if (out == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory for the list of settings");
    fprintf(out, "--loss=%s\n--compat=%s\nranks=%d\nmaths library=%s\n", loss_names[state->loss],
            state->options->compat_ds_0_13 ? "ds-0.13" : "none", state->ranks, gemm_library());
    config_list(&state->config, out);
    if (fclose(out) != 0)
        return train_fail(RING_ERR_INTERNAL, "the settings take more than %d bytes", SAME_TEXT_MAX);
    return RING_OK;
}

static void go_to(train_state *state, const run_place *place)
{
    state->step = state->first_step = place->step;
    state->epoch = place->epoch;
    state->micro_steps = place->micro_batches;
    state->events.all_samples = place->step * state->config.train_batch;
    const size_t again = place->epoch_over ? 0 : shares_resume(&state->shares, place->taken);
    if (again > 0)
        report_line(&state->events.report, "NOTE --resume: %zu samples are taken twice in epoch %d",
                    again, place->epoch);
    if (place->epoch_over && state->epoch < state->epochs && !is_over(state))
        state->epoch++;
    else if (place->epoch_over)
        state->updates = shares_left(&state->shares);
}

static ring_status start_saving(train_state *state)
{
    run_place place = {.epoch = 1};
    run_identity identity = {.model_hash = model_spec_hash(&state->spec),
                             .seed = state->options->seed};
    snprintf(identity.model, sizeof identity.model, "%s", state->spec.name);
    if (state->options->save_dir != NULL || state->options->resume != NULL)
        identity.data_hash = dataset_hash(&state->train);
    RING_TRY(agree(state->comm, describe_run(state)));
    RING_TRY(run_saving_start(&state->saving, state->options, &state->engine, &state->events.report,
                              &identity, state->settings, &place));
    go_to(state, &place);
    return RING_OK;
}

/* Collective. */
static ring_status start_events(train_state *state)
{
    return events_start(&state->events, &state->engine,
                        &(report_start){.model = state->spec.name,
                                        .loss = loss_names[state->loss],
                                        .maths = gemm_library(),
                                        .parameters = model_parameters(
                                            engine_network(&state->engine)),
                                        .train_samples = state->train.count,
                                        .test_samples = state->test.count,
                                        .seed = state->options->seed});
}

static ring_status set_up(train_state *state)
{
    ring_comm *comm = state->comm;
    RING_TRY(agree(comm, read_config(state)));
    RING_TRY(agree(comm, read_model(state)));
    RING_TRY(agree(comm, read_data(state)));
    RING_TRY(agree(comm, plan_epoch(state)));
    RING_TRY(compare_ranks(state));
    RING_TRY(agree(comm, open_outputs(state)));
    RING_TRY(engine_create(&state->engine, comm, &state->config, state->loss, &state->spec,
                           state->shares.samples[state->grid.share], state->options->seed));
    RING_TRY(start_saving(state));
    print_start(state);
    RING_TRY(start_events(state));
    return pipeline_lines_start(&state->events.report, &state->engine);
}

/* @param update  of those that are not skipped. */
static double lr_of(const train_state *state, long update)
{
    return schedule_lr(&state->config.schedule, state->config.optimizer.lr, update,
                       state->options->compat_ds_0_13);
}

static double loss_scale(const train_state *state)
{
    const bool scaled = state->config.precision.params == RING_FLOAT16;
    return scaled ? state->engine.overflow.scaler.scale : 0.0;
}

/* This rank's part of the next update. */
static engine_share next_share(const train_state *state)
{
    const data_shares *shares = &state->shares;
    const int share = state->grid.share;
    const size_t samples = shares_taken(shares, share, state->updates);
    const size_t begin = samples > 0 ? shares_begin(shares, share, state->updates) : 0;
    return (engine_share){.order = state->sampler.order + begin,
                          .samples = samples,
                          .micro = shares->micro[share],
                          .total = shares_total(shares, state->updates),
                          .micro_batches = shares_micro_batches(shares, state->updates)};
}

static ring_status update(train_state *state)
{
    engine_result result;
    const engine_share share = next_share(state);
    const long next = state->engine.optimizer.step + 1;
    const double lr = lr_of(state, next), start = train_now();
    schedule_betas(&state->config.schedule, next, state->engine.optimizer.config.betas);
    state->engine.stop_asked = stop_signals_asked();
    events_begin_update(&state->events, state->step + 1);
    RING_TRY(engine_update_share(&state->engine, &state->train, &share, lr, &result));
    const double end = train_now();
    state->stopped = stop_signals_of(result.stop_asked);
    state->updates++;
    state->step++;
    state->micro_steps += share.micro_batches;
    if (state->step == state->first_step + 1)
        report_line(&state->events.report, "first update done %.3f s after the start",
                    end - state->options->started);
    for (int i = 0; i < OVERFLOW_LINES && result.skipped; i++)
        report_line(&state->events.report, "%s", state->engine.overflow.lines[i]);
    return events_end_update(&state->events,
                             &(report_step){.step = state->step,
                                            .epoch = state->epoch,
                                            .loss = result.loss,
                                            .grad_norm = result.grad_norm,
                                            .lr = lr,
                                            .next_lr = lr_of(state,
                                                             state->engine.optimizer.step + 1),
                                            .skipped = state->engine.overflow.skipped,
                                            .loss_scale = loss_scale(state),
                                            .samples = (long)result.samples,
                                            .all_micro_batches = state->micro_steps,
                                            .micro_batches = share.micro_batches,
                                            .seconds = end - start});
}

/* DeepSpeed 0.13's loader never moves its sampler on: every epoch has the first's order. */
static void shuffle(train_state *state)
{
    const bool constant = state->options->compat_ds_0_13;
    sampler_set_epoch(&state->sampler, constant ? 0 : (uint64_t)state->epoch - 1);
}

static ring_status save(train_state *state, bool last)
{
    const run_place place = {.step = state->step,
                             .epoch = state->epoch,
                             .taken = shares_until(&state->shares, state->updates),
                             .epoch_over = state->updates >= shares_left(&state->shares),
                             .micro_batches = state->micro_steps};
    if (state->options->save_dir != NULL) /* nothing that is of no use */
        RING_TRY(engine_check_params(&state->engine));
    return run_saving_save(&state->saving, &state->engine, &place, last);
}

static ring_status run_updates(train_state *state)
{
    const size_t left = shares_left(&state->shares);
    while (state->updates < left && !is_over(state) && state->stopped == 0) {
        RING_TRY(update(state));
        if (run_saving_due(&state->saving, state->step, false))
            RING_TRY(save(state, false));
    }
    return RING_OK;
}

static bool is_last_epoch(const train_state *state)
{
    return state->epoch >= state->epochs || is_over(state);
}

/* "test accuracy 0.9812", or of text "validation loss 1.6214, accuracy of tokens 0.5120". */
static const char *score_text(const train_state *state, char text[SCORE_TEXT_MAX])
{
    const engine_score *score = &state->score;
    if (state->train.token_bytes > 0)
        snprintf(text, SCORE_TEXT_MAX, "validation loss %.4f, accuracy of tokens %.4f", score->loss,
                 score->accuracy);
    else
        snprintf(text, SCORE_TEXT_MAX, "test accuracy %.4f", score->accuracy);
    return text;
}

/* The accuracy stays as it was where the test set is not used. @param[out] seconds  of testing.
 */
static ring_status test(train_state *state, double *accuracy, double *seconds)
{
    const int every = state->options->eval_every;
    const double start = train_now();
    *accuracy = (double)NAN;
    *seconds = 0.0;
    if (every == 0 || (state->epoch % every > 0 && !is_last_epoch(state)))
        return RING_OK;
    RING_TRY(engine_evaluate(&state->engine, &state->test, &state->score));
    *accuracy = state->score.accuracy;
    *seconds = train_now() - start;
    return RING_OK;
}

/* Collective. */
static ring_status tell_epoch(train_state *state, size_t samples, double trained)
{
    char text[SCORE_TEXT_MAX];
    double accuracy, tested;
    const double rate = (double)samples / trained;
    RING_TRY(test(state, &accuracy, &tested));
    if (isnan(accuracy))
        report_line(&state->events.report, "epoch %d: %.0f samples/s, %.2f s", state->epoch, rate,
                    trained);
    else
        report_line(&state->events.report,
                    "epoch %d: %s, %.0f samples/s, %.2f s, then %.2f s of testing", state->epoch,
                    score_text(state, text), rate, trained, tested);
    return events_end_epoch(&state->events, &(report_epoch){.step = state->step,
                                                            .epoch = state->epoch,
                                                            .accuracy = accuracy,
                                                            .seconds = trained,
                                                            .test_seconds = tested});
}

static ring_status train_epoch(train_state *state)
{
    const size_t first = shares_until(&state->shares, 0);
    const double start = train_now();
    shuffle(state);
    RING_TRY(run_updates(state));
    if (state->stopped != 0)
        return RING_OK;
    const double trained = train_now() - start;
    RING_TRY(engine_check_params(&state->engine));
    const size_t samples = shares_until(&state->shares, state->updates) - first;
    RING_TRY(tell_epoch(state, samples, trained));
    if (run_saving_due(&state->saving, state->step, state->updates >= shares_left(&state->shares)))
        RING_TRY(save(state, false));
    return RING_OK;
}

static ring_status close_outputs(train_state *state, const float *params)
{
    if (state->dump.stream != NULL)
        RING_TRY(params_dump_write(&state->dump, &engine_network(&state->engine)->tensors, params));
    return events_close(&state->events);
}

/* What follows a signal: nothing that can wait. */
static ring_status stop(train_state *state)
{
    const bool saves = state->options->save_dir != NULL;
    const char *name = sigabbrev_np(state->stopped);
    RING_TRY(save(state, true));
    output_discard(&state->dump);
    report_line(&state->events.report, "SIG%s: stopped after update %ld, in epoch %d%s", name,
                state->step, state->epoch,
                saves ? "; go on with --resume latest" : "; nothing is saved without --save DIR");
    return agree(state->comm, events_close(&state->events));
}

static ring_status finish(train_state *state)
{
    const float *params = NULL;
    char text[SCORE_TEXT_MAX];
    if (state->step < state->options->max_steps)
        report_line(&state->events.report,
                    "--epochs %d ended the run after %ld updates, before --max-steps %ld",
                    state->epochs, state->step, state->options->max_steps);
    RING_TRY(pipeline_lines_end(&state->events.report, &state->engine));
    RING_TRY(save(state, true));
    if (state->options->eval_every > 0)
        report_line(&state->events.report, "%s", score_text(state, text));
    if (state->options->dump_path != NULL)
        RING_TRY(engine_params(&state->engine, &params));
    return agree(state->comm, close_outputs(state, params));
}

static ring_status train(train_state *state)
{
    stop_signals_begin();
    RING_TRY(train_epoch(state));
    while (state->stopped == 0 && !is_last_epoch(state)) {
        state->epoch++;
        state->updates = 0;
        shares_rewind(&state->shares);
        RING_TRY(train_epoch(state));
    }
    return state->stopped != 0 ? stop(state) : finish(state);
}

static ring_status print_estimate(const train_state *state, size_t samples)
{
    if (state->grid.stages == 1)
        return estimate_print(&state->config, &state->spec, samples, state->ranks, stdout);
    printf("the memory of a pipeline's stages is told when the training starts\n");
    return RING_OK;
}

/* All that can be wrong before the training, and what it would take. */
static ring_status check_all(train_state *state)
{
    size_t samples = SIZE_MAX;
    RING_TRY(read_config(state));
    RING_TRY(read_model(state));
    if (state->options->data != NULL) {
        RING_TRY(read_data(state));
        RING_TRY(plan_epoch(state));
        samples = state->shares.samples[0];
    }
    if (state->rank == 0) {
        config_print(&state->config, true, stdout);
        RING_TRY(print_estimate(state, samples));
        printf("checked%s: this would train\n", samples == SIZE_MAX ? ", but for the data" : "");
    }
    return RING_OK;
}

static ring_status run_all(train_state *state)
{
    RING_TRY(train_ring(NULL, ring_comm_init_env(&state->comm)));
    state->ranks = ring_comm_size(state->comm);
    state->rank = ring_comm_rank(state->comm);
    if (state->options->check > 0)
        state->ranks = state->options->check;
    if (state->options->check != CHECK_NOTHING)
        return agree(state->comm, check_all(state));
    RING_TRY(set_up(state));
    return train(state);
}

static void tear_down(train_state *state)
{
    events_close(&state->events);
    output_discard(&state->dump);
    run_saving_close(&state->saving);
    engine_destroy(&state->engine);
    sampler_destroy(&state->sampler);
    shares_free(&state->shares);
    model_spec_free(&state->spec);
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
    train_state state = {.options = options, .loss = options->loss};
    stop_signals_watch();
    gemm_set_threads(wanted_threads());
    const ring_status status = run_all(&state);
    if (status != RING_OK && (state.rank == 0 || !train_error_is_shared()))
        report_error(&state.events.report, train_error());
    const int stopped = state.stopped;
    tear_down(&state);
    if (status == RING_OK && stopped != 0)
        return SIGNAL_EXIT + stopped;
    return status == RING_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
