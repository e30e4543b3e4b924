/* SPDX-License-Identifier: Apache-2.0
 * Reading, and checking that the parts go together. */
#include "run_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builtin.h"
#include "errors.h"
#include "layer_list.h"

enum { LINES_AN_EPOCH = 10 };

/* ---- Configuration ------------------------------------------------------------------------- */

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

ring_status inputs_read_config(train_state *state)
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

/* ---- Data and network ---------------------------------------------------------------------- */

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

ring_status inputs_read_data(train_state *state)
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

ring_status inputs_read_model(train_state *state)
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
ring_status inputs_divide(train_state *state)
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
