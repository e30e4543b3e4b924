/* SPDX-License-Identifier: Apache-2.0
 * Builds an engine from its options in several phases. After each phase all ranks agree that it has
 * succeeded everywhere, so that they fail together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "errors.h"
#include "gemm.h"
#include "layer_list.h"
#include "run_progress.h"
#include "run_settings.h"
#include "thread_count.h"
#include "train_handle.h"

const char *ring_train_error(void)
{
    return train_error();
}

/* ---- Options ------------------------------------------------------------------------------- */

static ring_status check_options(const ring_train_options *options)
{
    if ((options->config == NULL) == (options->config_text == NULL))
        return train_fail(RING_ERR_ARGUMENT,
                          "set exactly one of config, a file, and config_text, the text of one");
    if (options->model != NULL && options->layers != NULL)
        return train_fail(RING_ERR_ARGUMENT,
                          "model and layers both describe the network; set only one");
    if (options->data != NULL && (options->train.count > 0 || options->test.count > 0))
        return train_fail(RING_ERR_ARGUMENT,
                          "data is a folder of samples, and train and test are samples of the "
                          "caller; set either data or train and test");
    if (options->keep < 0)
        return train_fail(RING_ERR_ARGUMENT,
                          "keep is %d, but must be a number of checkpoints, or 0 for all",
                          options->keep);
    return RING_OK;
}

/* Copies and checks the options. A program that was built with an older header passes a shorter
 * struct; the members that it lacks are zero. */
static ring_status copy_options(const ring_train_options *given, ring_train_options *options)
{
    *options = (ring_train_options)RING_TRAIN_OPTIONS_INIT;
    if (given == NULL || given->size < sizeof given->size)
        return train_fail(RING_ERR_ARGUMENT, "options is NULL or has no size; initialize it with "
                                             "RING_TRAIN_OPTIONS_INIT");
    memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
    return check_options(options);
}

/* Notes the configuration's keys about output, since the library itself prints and writes nothing.
 */
static void note_reports(ring_train *engine)
{
    const train_config *config = &engine->trainer.config;
    const struct {
        const char *key;
        bool given;
    } keys[] = {{"steps_per_print", config->steps_per_print > 0},
                {"wall_clock_breakdown", config->wall_clock_breakdown},
                {"memory_breakdown", config->memory_breakdown},
                {"dump_state", config->dump_state},
                {"tensorboard", config->tensorboard.enabled},
                {"csv_monitor", config->csv.enabled},
                {"wandb", config->wandb.enabled}};
    char text[128];
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        snprintf(text, sizeof text,
                 "%s has no effect here: the program itself must report, by ring_train_get_info()",
                 keys[i].key);
        if (keys[i].given)
            trainer_note(&engine->trainer, text);
    }
}

static ring_status read_config(ring_train *engine, const ring_train_options *options)
{
    static const char name[] = "the configuration";
    trainer *made = &engine->trainer;
    const config_options how = {.warn_unknown = options->warn_unknown != 0,
                                .compat_ds_0_13 = made->compat};
    ring_comm_info info = {.size = sizeof info};
    if (options->config != NULL)
        RING_TRY(config_read(options->config, &how, trainer_note, made, &made->config));
    else
        RING_TRY(config_parse(name, options->config_text, strlen(options->config_text), &how,
                              trainer_note, made, &made->config));
    note_reports(engine);
    RING_TRY(train_ring(made->comm, ring_comm_get_info(made->comm, &info)));
    const char *launcher = info.launcher[0] != '\0' ? info.launcher : "the communicator";
    return trainer_resolve(made, 0, 0, launcher, BATCH_EXACT);
}

static ring_status read_model(ring_train *engine, const ring_train_options *options)
{
    RING_TRY(user_ops_create(&engine->ops, options->ops, options->op_count));
    if (options->layers != NULL)
        return layer_list_parse(&engine->trainer.spec, engine->ops.rows, "layers", options->layers,
                                strlen(options->layers));
    return trainer_read_model(&engine->trainer, options->model != NULL ? options->model : "mlp",
                              engine->ops.rows);
}

/* Fills in the "auto" values of the configuration. Some follow from the number of updates of the
 * run, which the library does not know. */
static ring_status fill_automatic(ring_train *engine)
{
    trainer_fill_automatic(&engine->trainer, 0);
    const char *open = config_open_automatic(&engine->trainer.config);
    if (open == NULL)
        return RING_OK;
    return train_fail(RING_ERR_CONFIG, "%s = auto: the library cannot derive it; write a value",
                      open);
}

static ring_status prepare(ring_train *engine, const ring_train_options *options)
{
    trainer *made = &engine->trainer;
    made->note = options->note;
    made->note_context = options->note_context;
    engine->schedule = options->schedule;
    engine->schedule_context = options->schedule_context;
    made->seed = options->seed;
    made->compat = options->compat_ds_0_13 != 0;
    if (options->device != NULL && !trainer_parse_device(options->device, &made->device))
        return train_fail(RING_ERR_ARGUMENT,
                          "options.device is \"%s\", but must be auto, cpu, cuda or cuda:N",
                          options->device);
    made->tf32 = options->tf32 != 0;
    engine->loss_is_scaled = options->loss_is_scaled != 0;
    engine->lr = -1.0;
    engine->keep = options->keep;
    RING_TRY(handle_choose_data(engine, options));
    RING_TRY(read_config(engine, options));
    RING_TRY(read_model(engine, options));
    return fill_automatic(engine);
}

/* ---- The same on all ranks ----------------------------------------------------------------- */

/* The context of list_settings(). */
typedef struct given_options {
    ring_train *engine;
    const ring_train_options *options;
} given_options;

/* Lists the settings that are compared before the data are read. The kind of data must be the same,
 * since the ranks of a host read a folder together. */
static void list_settings(void *context, FILE *out)
{
    const given_options *given = context;
    const ring_train_options *options = given->options;
    const char *kind = "none";
    if (options->data != NULL)
        kind = "a folder";
    else if (options->train.count > 0 || options->test.count > 0)
        kind = "the caller's";
    fprintf(out, "compat_ds_0_13=%d\n", given->engine->trainer.compat);
    settings_list(&given->engine->trainer, "", out);
    fprintf(out, "data=%s\n", kind);
}

static void list_data(void *context, FILE *out)
{
    settings_list_data(context, "", out);
}

/* ---- The engine ---------------------------------------------------------------------------- */

static ring_status build(ring_train *engine, const ring_train_options *given)
{
    ring_train_options options;
    trainer *made = &engine->trainer;
    gemm_set_threads(threads_wanted());
    RING_TRY(agree(made->comm, copy_options(given, &options)));
    RING_TRY(agree(made->comm, prepare(engine, &options)));
    RING_TRY(settings_compare(made, list_settings, &(given_options){engine, &options}));
    RING_TRY(handle_open_data(engine, &options));
    RING_TRY(settings_compare(made, list_data, made));
    RING_TRY(trainer_create_engine(made, engine->micro, options.workers));
    RING_TRY(agree(made->comm, handle_make_batches(engine)));
    progress_begin_epoch(made, 1);
    return RING_OK;
}

ring_status ring_train_create(ring_train **engine, ring_comm *comm,
                              const ring_train_options *options)
{
    ring_train *made = NULL;
    if (engine == NULL || comm == NULL)
        return train_fail(RING_ERR_ARGUMENT, "ring_train_create: engine or comm is NULL");
    *engine = NULL;
    ring_status status = agree(comm, train_alloc((void **)&made, sizeof *made, "an engine"));
    if (status != RING_OK) {
        free(made);
        return status;
    }
    made->trainer.comm = comm;
    made->trainer.ranks = ring_comm_size(comm);
    made->trainer.rank = ring_comm_rank(comm);
    status = handle_settle(made, build(made, options));
    if (status == RING_OK)
        *engine = made;
    else
        ring_train_destroy(made);
    return status;
}

void ring_train_destroy(ring_train *engine)
{
    if (engine == NULL)
        return;
    open_update_drop(&engine->update);
    trainer_free(&engine->trainer);
    user_ops_free(&engine->ops);
    free(engine->next.inputs);
    free(engine->next.labels);
    free(engine->numbers);
    free(engine);
}
