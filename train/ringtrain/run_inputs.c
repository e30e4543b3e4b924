/* SPDX-License-Identifier: Apache-2.0
 * Reads the configuration, the network and the data, and checks that they fit each other and are
 * the same on all ranks. */
#include "run_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "run_progress.h"
#include "run_settings.h"

/* Pairs of log lines in an epoch by default. With its other lines an epoch prints at most ten
 * lines. */
enum { PAIRS_AN_EPOCH = 4 };

/* ---- Configuration ------------------------------------------------------------------------- */

static void print_note(void *context, const char *text)
{
    const train_state *state = context;
    if (state->trainer.rank == 0)
        printf("NOTE %s\n", text);
}

/* Prints a note for each variable of DeepSpeed or its libraries that is set, but has no effect. */
static void note_variables(train_state *state)
{
    static const struct {
        const char *name, *why;
    } variables[] = {{"CUDA_VISIBLE_DEVICES", "ranks run on CPUs"},
                     {"DS_BUILD_OPS", "nothing is compiled at run time"},
                     {"UCX_TLS", "RING_TRANSPORT chooses the transport"}};
    const trainer_device *device = &state->trainer.device;
    const bool may_use_gpu = device->is_gpu || (device->automatic && state->trainer.ranks == 1);
    char text[128];
    for (size_t i = may_use_gpu ? 1 : 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i].name);
        snprintf(text, sizeof text, "%s has no effect: %s", variables[i].name, variables[i].why);
        if (value != NULL && value[0] != '\0')
            print_note(state, text);
    }
}

/* Prints notes about variables and options without effect, and about --compat. */
static void note_ignored(train_state *state)
{
    note_variables(state);
    if (state->options->deepspeed_given)
        print_note(state, "--deepspeed has no effect: there is no other engine");
    if (state->options->local_rank_given)
        print_note(state, "--local_rank has no effect: the launcher's environment sets it");
    if (state->options->backend != NULL)
        print_note(state, "--backend has no effect: ranks communicate through libring");
    if (state->options->compat_ds_0_13)
        print_note(state,
                   "--compat ds-0.13: no clipping unless the configuration sets it, the first "
                   "update at optimizer.params.lr, one sample order for all epochs, the loss "
                   "scale's window counted from the overflow, log lines every 10 updates");
}

/* Sets the micro-batch from --batch_size, which is divided among the ranks of a host as in scripts
 * of DistributedDataParallel. The divisor depends on the stages and tensor ranks in the
 * configuration, so this function reads the configuration without printing notes; the caller reads
 * it again, with the micro-batch.
 * @param first, local   the first rank of this host, and the number of its ranks
 * @param[out] options   receives micro_batch */
static ring_status share_batch(train_state *state, const char *launcher, int first, int local,
                               config_options *options)
{
    trainer *made = &state->trainer;
    const long batch = state->options->batch;
    if (batch == 0)
        return RING_OK;
    RING_TRY(config_read(state->options->config_path, options, NULL, NULL, &made->config));
    RING_TRY(
        trainer_place_ranks(made, state->options->stages, state->options->tensor_ranks, launcher));
    const int shares = grid_shares_of(&made->grid, first, local);
    options->micro_batch = batch / shares;
    if (batch % shares == 0)
        return RING_OK;
    return train_fail(RING_ERR_CONFIG,
                      "--batch_size %ld is for all ranks of this host, which divide the data into "
                      "%d parts; give a multiple of %d",
                      batch, shares, shares);
}

/* Prints a note if accelerate's file sets another number of ranks. */
static void note_processes(train_state *state)
{
    const long wanted = state->trainer.config.processes;
    const int ranks = state->trainer.ranks;
    char text[256];
    if (wanted == 0 || wanted == ranks)
        return;
    snprintf(text, sizeof text,
             "num_processes is %ld, but there %s %d rank%s; ringrun --config_file would start %ld",
             wanted, ranks == 1 ? "is" : "are", ranks, plural(ranks), wanted);
    print_note(state, text);
}

ring_status inputs_read_config(train_state *state)
{
    trainer *made = &state->trainer;
    ring_comm_info info = {.size = sizeof info};
    config_options options = {.warn_unknown = state->options->warn_unknown,
                              .compat_ds_0_13 = state->options->compat_ds_0_13,
                              .accelerate = state->options->accelerate,
                              .fp16 = state->options->fp16,
                              .bf16 = state->options->bf16};
    made->note = print_note;
    made->note_context = state;
    note_ignored(state);
    RING_TRY(train_ring(made->comm, ring_comm_get_info(made->comm, &info)));
    const bool here = state->options->check <= 0;
    const int first = here ? info.rank - info.local_rank : 0; /* ranks of a host are consecutive */
    const int local = here ? info.local_ranks : made->ranks;
    const char *launcher = here ? info.launcher : "--check";
    if (launcher[0] == '\0')
        launcher = "no launcher";
    RING_TRY(share_batch(state, launcher, first, local, &options));
    RING_TRY(config_read(state->options->config_path, &options, trainer_note, made, &made->config));
    note_processes(state);
    return trainer_resolve(made, state->options->stages, state->options->tensor_ranks, launcher,
                           state->options->policy);
}

/* ---- Data and network ---------------------------------------------------------------------- */

ring_status inputs_read_data(train_state *state)
{
    trainer *made = &state->trainer;
    const char *folder = state->options->data;
    if (state->options->check == CHECK_NOTHING)
        return trainer_read_data(made, folder);
    RING_TRY(dataset_read(folder, DATASET_TRAIN, &made->train));
    return dataset_read(folder, DATASET_TEST, &made->test);
}

ring_status inputs_read_model(train_state *state)
{
    RING_TRY(trainer_read_model(&state->trainer, state->options->model, NULL));
    trainer_fill_automatic(&state->trainer, 0);
    return RING_OK;
}

/* @param left, each  updates that remain in this epoch, and updates in a whole epoch
 * @return epochs of the run: --epochs, or otherwise as many as --max-steps needs */
static int count_epochs(const train_state *state, long left, long each)
{
    const run_options *options = state->options;
    const long more = options->max_steps - state->trainer.step - left;
    if (options->epochs > 0 || options->max_steps == 0)
        return options->epochs > 0 ? options->epochs : 1;
    return state->trainer.epoch + (int)(more > 0 ? (more + each - 1) / each : 0);
}

ring_status inputs_divide(train_state *state)
{
    RING_TRY(trainer_divide(&state->trainer));
    const long updates = (long)state->trainer.shares.updates;
    if (state->trainer.config.steps_per_print == 0)
        state->trainer.config.steps_per_print = 1 + (updates - 1) / PAIRS_AN_EPOCH;
    return RING_OK;
}

void inputs_count(train_state *state)
{
    const trainer *made = &state->trainer;
    const long most = state->options->max_steps, each = (long)made->shares.updates,
               left = (long)progress_left(made);
    state->epochs = count_epochs(state, left, each);
    state->steps = made->step;
    if (made->epoch <= state->epochs)
        state->steps += left + (state->epochs - made->epoch) * each;
    if (most > 0 && most < state->steps)
        state->steps = most > made->step ? most : made->step;
    trainer_fill_automatic(&state->trainer, state->steps);
}

/* ---- Settings that must agree -------------------------------------------------------------- */

/* Lists all settings that affect results or the collective calls of ranks. */
static void list_all(void *context, FILE *out)
{
    train_state *state = context;
    const run_options *options = state->options;
    const long each = (long)state->trainer.shares.updates;
    fprintf(out, "--compat=%s\n--max-steps=%ld\n", options->compat_ds_0_13 ? "ds-0.13" : "none",
            options->max_steps);
    settings_list(&state->trainer, "--", out);
    fprintf(out, "--epochs=%d\n--monitor-every=%ld\n", count_epochs(state, each, each),
            options->events.monitor_every);
    fprintf(out, "--save=%.200s\n--save-every=%ld\n--resume=%.200s\n--init=%.200s\n",
            options->save_dir != NULL ? options->save_dir : "", options->save_every,
            options->resume != NULL ? options->resume : "",
            options->init_path != NULL ? options->init_path : "");
    fprintf(out, "--eval-every=%d\n", options->eval_every);
    settings_list_data(&state->trainer, "--", out);
}

ring_status inputs_compare(train_state *state)
{
    return settings_compare(&state->trainer, list_all, state);
}
