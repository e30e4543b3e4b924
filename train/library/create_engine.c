/* SPDX-License-Identifier: Apache-2.0
 * From options to an engine: every phase ends with all ranks agreeing that it worked. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "builtin.h"
#include "errors.h"
#include "gemm.h"
#include "layer_list.h"
#include "schedule.h"
#include "text_file.h"
#include "thread_count.h"
#include "train_handle.h"

enum { LAYERS_BYTES_MAX = 1 << 20 };

const char *ring_train_error(void)
{
    return train_error();
}

void handle_note(void *context, const char *text)
{
    const ring_train *engine = context;
    if (engine->note != NULL)
        engine->note(engine->note_context, text);
}

/* ---- Options ------------------------------------------------------------------------------- */

static ring_status check_options(const ring_train_options *options)
{
    if ((options->config == NULL) == (options->config_text == NULL))
        return train_fail(RING_ERR_ARGUMENT, "give config, a file, or config_text, its text");
    if (options->model != NULL && options->layers != NULL)
        return train_fail(RING_ERR_ARGUMENT, "model and layers are both a network; give one");
    if (options->data != NULL && (options->train.count > 0 || options->test.count > 0))
        return train_fail(RING_ERR_ARGUMENT,
                          "data is a folder with training and test samples, and train and test are "
                          "those of the caller; give one");
    if (options->keep < 0)
        return train_fail(RING_ERR_ARGUMENT, "keep %d: so many checkpoints, or 0 for all",
                          options->keep);
    return RING_OK;
}

/* Programs built with a shorter struct have zeroes behind it. */
static ring_status copy_options(const ring_train_options *given, ring_train_options *options)
{
    *options = (ring_train_options)RING_TRAIN_OPTIONS_INIT;
    if (given == NULL || given->size < sizeof given->size)
        return train_fail(RING_ERR_ARGUMENT, "no options: begin with RING_TRAIN_OPTIONS_INIT");
    memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
    return check_options(options);
}

/* Notes the keys about output: the caller's program prints and writes. */
static void note_reports(ring_train *engine)
{
    const train_config *config = &engine->config;
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
                 "%s has no effect here: the program reports, from ring_train_get_info()",
                 keys[i].key);
        if (keys[i].given)
            handle_note(engine, text);
    }
}

static ring_status read_config(ring_train *engine, const ring_train_options *options)
{
    static const char name[] = "the configuration";
    const config_options how = {.warn_unknown = options->warn_unknown != 0,
                                .compat_ds_0_13 = engine->compat};
    ring_comm_info info = {.size = sizeof info};
    train_config *config = &engine->config;
    if (options->config != NULL)
        RING_TRY(config_read(options->config, &how, handle_note, engine, config));
    else
        RING_TRY(config_parse(name, options->config_text, strlen(options->config_text), &how,
                              handle_note, engine, config));
    note_reports(engine);
    RING_TRY(train_ring(engine->comm, ring_comm_get_info(engine->comm, &info)));
    const char *launcher = info.launcher[0] != '\0' ? info.launcher : "the communicator";
    RING_TRY(config_resolve_tensor(config, 0, info.ranks, launcher));
    const int tensors = (int)config->tensor_ranks;
    RING_TRY(config_resolve_stages(config, 0, info.ranks / tensors, launcher));
    engine->grid = grid_place(info.ranks, info.rank, (int)config->pipeline.stages, tensors);
    return config_resolve_batch(config, engine->grid.shares, launcher, BATCH_EXACT);
}

static ring_status read_layers(ring_train *engine, const char *path)
{
    char *text;
    size_t length;
    ring_status status = text_file_read(path, LAYERS_BYTES_MAX, "a list of layers", &text, &length);
    if (status == RING_OK)
        status = layer_list_parse_own(&engine->spec, engine->ops.rows, path, text, length);
    free(text);
    return status;
}

static ring_status read_model(ring_train *engine, const ring_train_options *options)
{
    const char *model = options->model != NULL ? options->model : "mlp", *end = strrchr(model, '.');
    RING_TRY(user_ops_create(&engine->ops, options->ops, options->op_count));
    if (options->layers != NULL)
        return layer_list_parse_own(&engine->spec, engine->ops.rows, "layers", options->layers,
                                    strlen(options->layers));
    if (end != NULL && strcmp(end, ".json") == 0)
        return read_layers(engine, model);
    return model_build(&engine->spec, model);
}

/* How long the caller trains is not known here. */
static ring_status fill_automatic(ring_train *engine)
{
    const automatic_facts facts = {.width = model_spec_width(&engine->spec)};
    config_fill_automatic(&engine->config, &facts, handle_note, engine);
    const char *open = config_open_automatic(&engine->config);
    if (open == NULL)
        return RING_OK;
    return train_fail(RING_ERR_CONFIG, "%s = auto: only the caller knows it; write a value", open);
}

static ring_status prepare(ring_train *engine, const ring_train_options *options)
{
    engine->note = options->note;
    engine->note_context = options->note_context;
    engine->schedule = options->schedule;
    engine->schedule_context = options->schedule_context;
    engine->seed = options->seed;
    engine->compat = options->compat_ds_0_13 != 0;
    engine->loss_is_scaled = options->loss_is_scaled != 0;
    engine->lr = -1.0;
    engine->keep = options->keep;
    RING_TRY(handle_choose_data(engine, options));
    RING_TRY(read_config(engine, options));
    RING_TRY(read_model(engine, options));
    return fill_automatic(engine);
}

/* ---- The same on all ranks ----------------------------------------------------------------- */

/* @return which of the three is given. */
static const char *data_kind(const ring_train_options *options)
{
    if (options->data != NULL)
        return "a folder";
    return options->train.count > 0 || options->test.count > 0 ? "the caller's" : "none";
}

/* Before the data are read, which ranks of a host do together. */
static void list_settings(const ring_train *engine, const ring_train_options *options, FILE *out)
{
    fprintf(out, "model=%s (%d layers, hash %016" PRIx64 ")\nseed=%" PRIu64 "\ncompat_ds_0_13=%d\n",
            engine->spec.name, engine->spec.count, model_spec_hash(&engine->spec), engine->seed,
            engine->compat);
    config_list(&engine->config, out);
    fprintf(out, "data=%s\nnormalize=%s\nmaths library=%s\n", data_kind(options),
            engine->norm.channels > 0 ? engine->norm.text : "none", gemm_library());
}

static void list_data(const ring_train *engine, const ring_train_options *options, FILE *out)
{
    (void)options;
    fprintf(out, "loss=%s\ntraining data=%zu samples (hash %016" PRIx64 ")\n",
            loss_names[engine->loss], engine->train.count, dataset_hash(&engine->train));
    fprintf(out, "test data=%zu samples (hash %016" PRIx64 ")\n", engine->test.count,
            dataset_hash(&engine->test));
}

typedef void list_fn(const ring_train *engine, const ring_train_options *options, FILE *out);

static ring_status write_list(const ring_train *engine, const ring_train_options *options,
                              list_fn *list, char text[SAME_TEXT_MAX])
{
    FILE *out = fmemopen(text, SAME_TEXT_MAX, "w");
    if (out == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory to compare the settings of ranks");
    list(engine, options, out);
    if (fclose(out) != 0)
        return train_fail(RING_ERR_INTERNAL, "the settings take more than %d bytes", SAME_TEXT_MAX);
    return RING_OK;
}

/* Collective. */
static ring_status compare(const ring_train *engine, const ring_train_options *options,
                           list_fn *list)
{
    char text[SAME_TEXT_MAX] = "";
    RING_TRY(agree(engine->comm, write_list(engine, options, list, text)));
    return same_check(engine->comm, text);
}

/* ---- The engine ---------------------------------------------------------------------------- */

static void identify(ring_train *engine)
{
    engine->run = (checkpoint_run){.identity = {.model_hash = model_spec_hash(&engine->spec),
                                                .data_hash = dataset_hash(&engine->train),
                                                .seed = engine->seed},
                                   .settings = engine->settings};
    snprintf(engine->run.identity.model, sizeof engine->run.identity.model, "%s",
             engine->spec.name);
}

static ring_status describe(ring_train *engine)
{
    return checkpoint_describe(&engine->engine, engine->compat,
                               engine->norm.channels > 0 ? engine->norm.text : NULL,
                               engine->settings);
}

static ring_status build(ring_train *engine, const ring_train_options *given)
{
    ring_train_options options;
    gemm_set_threads(threads_wanted());
    RING_TRY(agree(engine->comm, copy_options(given, &options)));
    RING_TRY(agree(engine->comm, prepare(engine, &options)));
    RING_TRY(compare(engine, &options, list_settings));
    RING_TRY(handle_open_data(engine, &options));
    RING_TRY(compare(engine, &options, list_data));
    RING_TRY(engine_create(&engine->engine, engine->comm, &engine->config, engine->loss,
                           &engine->spec, engine->micro, engine->seed));
    identify(engine);
    RING_TRY(agree(engine->comm, handle_make_batches(engine)));
    RING_TRY(agree(engine->comm, describe(engine)));
    handle_begin_epoch(engine, 1);
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
    made->comm = comm;
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
    engine_destroy(&engine->engine);
    sampler_destroy(&engine->sampler);
    shares_free(&engine->shares);
    dataset_free(&engine->train);
    dataset_free(&engine->test);
    model_spec_free(&engine->spec);
    user_ops_free(&engine->ops);
    free(engine->next.inputs);
    free(engine->next.labels);
    free(engine->numbers);
    free(engine);
}
