/* SPDX-License-Identifier: Apache-2.0
 * Lists, a setting a line. */
#include "run_settings.h"

#include <inttypes.h>
#include <stdio.h>

#include "agree.h"
#include "errors.h"
#include "gemm.h"

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

/* All settings that an update's result depends on, a line each. */
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
    fprintf(out, "--normalize=%s\n", options->norm.channels > 0 ? options->norm.text : "none");
    list_dataset("training data", &state->train, out);
    list_dataset("test data", &state->test, out);
    if (fclose(out) != 0)
        return train_fail(RING_ERR_INTERNAL, "the settings take more than %d bytes", SAME_TEXT_MAX);
    return RING_OK;
}

ring_status settings_compare(const train_state *state)
{
    char text[SAME_TEXT_MAX] = "";
    RING_TRY(agree(state->comm, list_settings(state, text)));
    return same_check(state->comm, text);
}
