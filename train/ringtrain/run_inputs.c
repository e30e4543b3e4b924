/* SPDX-License-Identifier: Apache-2.0
 * Reading, and checking that the parts go together. */
#include "run_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builtin.h"
#include "errors.h"
#include "host_data.h"
#include "layer_list.h"
#include "model_data.h"

/* Of lines; with the others an epoch then has at most ten. */
enum { PAIRS_AN_EPOCH = 4 };

/* ---- Configuration ------------------------------------------------------------------------- */

static void print_note(void *context, const char *text)
{
    const train_state *state = context;
    if (state->rank == 0)
        printf("NOTE %s\n", text);
}

/* Notes variables of DeepSpeed and its libraries that have no effect. */
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
    if (state->options->backend != NULL)
        print_note(state, "--backend has no effect: ranks talk through libring");
    if (state->options->compat_ds_0_13)
        print_note(state,
                   "--compat ds-0.13: no clipping unless the configuration asks, the first "
                   "update at optimizer.params.lr, one sample order for all epochs, the loss "
                   "scale's window counted from the overflow, log lines each 10 updates");
}

static ring_status resolve_batch(train_state *state, const char *launcher)
{
    train_config *config = &state->config;
    const train_grid *grid = &state->grid;
    const long before = config->accumulation;
    char text[128], from[128];
    const int others = grid->stages * grid->tensors;
    if (grid->tensors > 1)
        snprintf(from, sizeof from, "%s: %d in %d stages of %d tensor ranks", launcher,
                 state->ranks, grid->stages, grid->tensors);
    else
        snprintf(from, sizeof from, "%s: %d in %d stages", launcher, state->ranks, grid->stages);
    RING_TRY(config_resolve_batch(config, grid->shares, others > 1 ? from : launcher,
                                  state->options->policy));
    if (before == 0 || before == config->accumulation)
        return RING_OK;
    snprintf(text, sizeof text,
             "--batch-policy=keep-global: gradient_accumulation_steps %ld -> %ld", before,
             config->accumulation);
    print_note(state, text);
    return RING_OK;
}

static ring_status resolve_grid(train_state *state, const char *launcher)
{
    train_config *config = &state->config;
    RING_TRY(config_resolve_tensor(config, state->options->tensor_ranks, state->ranks, launcher));
    const int tensors = (int)config->tensor_ranks;
    RING_TRY(
        config_resolve_stages(config, state->options->stages, state->ranks / tensors, launcher));
    state->grid = grid_place(state->ranks, state->rank, (int)config->pipeline.stages, tensors);
    return RING_OK;
}

/* --batch_size is of all ranks of a host, as users of DistributedDataParallel give it. What of them
 * are stages and tensor ranks is known behind a first reading, whose notes the second one gives.
 * @param local  the ranks of this host. @param options  gets the micro-batch. */
static ring_status share_batch(train_state *state, const char *launcher, int first, int local,
                               config_options *options)
{
    const long batch = state->options->batch;
    if (batch == 0)
        return RING_OK;
    RING_TRY(config_read(state->options->config_path, options, NULL, NULL, &state->config));
    RING_TRY(resolve_grid(state, launcher));
    const int shares = grid_shares_of(&state->grid, first, local);
    options->micro_batch = batch / shares;
    if (batch % shares == 0)
        return RING_OK;
    return train_fail(RING_ERR_CONFIG,
                      "--batch_size %ld is for all ranks of this host, which share the data out in "
                      "%d parts; give a multiple of that",
                      batch, shares);
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

static const char *launcher_of(const ring_comm_info *info)
{
    return info->launcher[0] != '\0' ? info->launcher : "no launcher";
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
    const bool here = state->options->check <= 0;
    const int first = here ? info.rank - info.local_rank : 0; /* they are neighbours */
    const int local = here ? info.local_ranks : state->ranks;
    const char *launcher = here ? launcher_of(&info) : "--check";
    RING_TRY(share_batch(state, launcher, first, local, &options));
    RING_TRY(config_read(state->options->config_path, &options, print_note, state, &state->config));
    note_processes(state);
    RING_TRY(resolve_grid(state, launcher));
    return resolve_batch(state, launcher);
}

/* ---- Data and network ---------------------------------------------------------------------- */

ring_status inputs_read_data(train_state *state)
{
    const char *folder = state->options->data;
    if (state->options->check == CHECK_NOTHING) {
        RING_TRY(host_data_read(state->comm, folder, DATASET_TRAIN, &state->train));
        return host_data_read(state->comm, folder, DATASET_TEST, &state->test);
    }
    RING_TRY(dataset_read(folder, DATASET_TRAIN, &state->train));
    return dataset_read(folder, DATASET_TEST, &state->test);
}

static ring_status normalize(train_state *state)
{
    const pixel_norm *norm = &state->options->norm;
    if (norm->channels == 0)
        return RING_OK;
    RING_TRY(dataset_normalize(&state->train, norm));
    return dataset_normalize(&state->test, norm);
}

ring_status inputs_fit_data(train_state *state)
{
    RING_TRY(model_data_fit(state->options->data, &state->spec, &state->loss, &state->train,
                            &state->test));
    return normalize(state);
}

static bool is_file(const char *model)
{
    const size_t length = strlen(model);
    return length > 5 && strcmp(model + length - 5, ".json") == 0;
}

static void fill_automatic(train_state *state, long updates)
{
    const automatic_facts facts = {.width = model_spec_width(&state->spec), .updates = updates};
    config_fill_automatic(&state->config, &facts, print_note, state);
}

ring_status inputs_read_model(train_state *state)
{
    const char *model = state->options->model;
    RING_TRY(is_file(model) ? layer_list_read(&state->spec, model)
                            : model_build(&state->spec, model));
    fill_automatic(state, 0);
    return RING_OK;
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
        state->config.steps_per_print = 1 + (updates - 1) / PAIRS_AN_EPOCH;
    fill_automatic(state, inputs_updates(state));
    return RING_OK;
}

long inputs_updates(const train_state *state)
{
    const long most = state->options->max_steps, all = state->epochs * (long)state->shares.updates;
    return most > 0 && most < all ? most : all;
}
