/* SPDX-License-Identifier: Apache-2.0
 * Sets up a trainer in steps, each of which uses the results of the steps before it. */
#include "trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "builtin.h"
#include "errors.h"
#include "estimate.h"
#include "host_data.h"
#include "layer_list.h"
#include "model_data.h"

void trainer_note(void *context, const char *text)
{
    const trainer *made = context;
    if (made->note != NULL)
        made->note(made->note_context, text);
}

/* ---- Ranks and batches --------------------------------------------------------------------- */

ring_status trainer_place_ranks(trainer *made, long stages, long tensors, const char *launcher)
{
    train_config *config = &made->config;
    RING_TRY(config_resolve_tensor(config, tensors, made->ranks, launcher));
    const int tensor_ranks = (int)config->tensor_ranks;
    RING_TRY(config_resolve_stages(config, stages, made->ranks / tensor_ranks, launcher));
    made->grid = grid_place(made->ranks, made->rank, (int)config->pipeline.stages, tensor_ranks);
    return RING_OK;
}

/* Resolves the batch sizes, with a text for messages that says how the ranks are arranged. */
static ring_status resolve_batch(trainer *made, const char *launcher, batch_policy policy)
{
    const train_grid *grid = &made->grid;
    const int others = grid->stages * grid->tensors;
    char from[128];
    if (grid->tensors > 1)
        snprintf(from, sizeof from, "%s: %d in %d stage%s of %d tensor rank%s", launcher,
                 made->ranks, grid->stages, plural(grid->stages), grid->tensors,
                 plural(grid->tensors));
    else
        snprintf(from, sizeof from, "%s: %d in %d stage%s", launcher, made->ranks, grid->stages,
                 plural(grid->stages));
    return config_resolve_batch(&made->config, grid->shares, others > 1 ? from : launcher, policy);
}

ring_status trainer_resolve(trainer *made, long stages, long tensors, const char *launcher,
                            batch_policy policy)
{
    const long before = made->config.accumulation;
    char text[128];
    RING_TRY(trainer_place_ranks(made, stages, tensors, launcher));
    RING_TRY(resolve_batch(made, launcher, policy));
    const long after = made->config.accumulation;
    if (before == 0 || before == after)
        return RING_OK;
    snprintf(text, sizeof text,
             "--batch-policy=keep-global: gradient_accumulation_steps %ld -> %ld", before, after);
    trainer_note(made, text);
    return RING_OK;
}

/* ---- Network and data ---------------------------------------------------------------------- */

ring_status trainer_read_model(trainer *made, const char *model, const nn_op *const *own)
{
    const char *end = strrchr(model, '.');
    if (end != NULL && strcmp(end, ".json") == 0)
        return layer_list_read(&made->spec, own, model);
    return model_build(&made->spec, model);
}

void trainer_fill_automatic(trainer *made, long updates)
{
    const automatic_facts facts = {.width = model_spec_width(&made->spec), .updates = updates};
    config_fill_automatic(&made->config, &facts, trainer_note, made);
}

ring_status trainer_read_data(trainer *made, const char *folder)
{
    RING_TRY(host_data_read(made->comm, folder, DATASET_TRAIN, &made->train));
    return host_data_read(made->comm, folder, DATASET_TEST, &made->test);
}

ring_status trainer_fit_data(trainer *made, const char *folder)
{
    RING_TRY(model_data_fit(folder, &made->spec, &made->loss, &made->train, &made->test));
    if (made->norm.channels == 0)
        return RING_OK;
    RING_TRY(dataset_normalize(&made->train, &made->norm));
    return dataset_normalize(&made->test, &made->norm);
}

ring_status trainer_divide(trainer *made)
{
    return division_make(&made->config, made->train.count, made->grid.shares, made->grid.share,
                         made->seed, &made->shares, &made->sampler);
}

/* ---- The device ---------------------------------------------------------------------------- */

bool trainer_parse_device(const char *text, trainer_device *out)
{
    char end;
    *out = (trainer_device){.automatic = strcmp(text, "auto") == 0,
                            .is_gpu = strncmp(text, "cuda", 4) == 0};
    if (!out->is_gpu || text[4] == '\0')
        return out->is_gpu || out->automatic || strcmp(text, "cpu") == 0;
    return sscanf(text, "cuda:%d%c", &out->gpu, &end) == 1 && out->gpu >= 0;
}

static ring_status try_gpu(trainer *made)
{
    int failed;
    RING_TRY(cuda_place_open(&made->gpu, made->device.gpu, made->tf32));
    made->spec.place = &made->gpu.place;
    RING_TRY(engine_check_place(made->spec.place, &made->config, made->ranks));
    return model_check(&made->spec, &failed);
}

/* Leaves the GPU, with a note that has the text of the error. */
static void stay_on_host(trainer *made)
{
    char text[TRAIN_ERROR_MAX];
    snprintf(text, sizeof text, "training on the CPU, because the GPU cannot be used: %s",
             train_error());
    trainer_note(made, text);
    made->spec.place = NULL;
    cuda_place_close(&made->gpu);
}

ring_status trainer_open_device(trainer *made)
{
    const trainer_device *device = &made->device;
    if (device->is_gpu)
        RING_TRY(try_gpu(made));
    else if (device->automatic && made->ranks == 1 && cuda_driver_load() != NULL &&
             try_gpu(made) != RING_OK)
        stay_on_host(made);
    if (made->tf32 && made->spec.place == NULL)
        trainer_note(made, "TF32 has no effect: the CPU multiplies in float32");
    return RING_OK;
}

/* ---- The engine ---------------------------------------------------------------------------- */

ring_status trainer_describe(trainer *made)
{
    return checkpoint_describe(&made->engine, made->compat,
                               made->norm.channels > 0 ? made->norm.text : NULL, made->settings);
}

/* Fills in the description of the run for checkpoints, and starts the reader. */
static ring_status start(trainer *made, int readers)
{
    run_identity *identity = &made->run.identity;
    identity->model_hash = model_spec_hash(&made->spec);
    identity->seed = made->seed;
    snprintf(identity->model, sizeof identity->model, "%s", made->spec.name);
    made->run.settings = made->settings;
    made->run.place = (run_place){.epoch = 1};
    made->engine.waits = made->waits;
    RING_TRY(engine_keep_samples(&made->engine, &made->train));
    RING_TRY(engine_read_ahead(&made->engine, made->train.count > 0 ? readers : 0));
    return trainer_describe(made);
}

/* Appends advice to the error about memory. The error is marked again if all ranks have the same
 * text. */
static void advise_on_memory(const trainer *made, size_t samples_max)
{
    const bool shared = train_error_is_shared();
    char cause[TRAIN_ERROR_MAX], advice[512];
    snprintf(cause, sizeof cause, "%s", train_error());
    estimate_advice(&made->config, &made->spec, samples_max, &made->grid, advice, sizeof advice);
    train_fail(RING_ERR_MEMORY, "%s; %s", cause, advice);
    if (shared)
        train_error_share();
}

ring_status trainer_create_engine(trainer *made, size_t samples_max, int readers)
{
    RING_TRY(agree(made->comm, trainer_open_device(made)));
    ring_status status = engine_create(&made->engine, made->comm, &made->config, made->loss,
                                       &made->spec, samples_max, made->seed);
    if (status == RING_ERR_MEMORY && made->device.automatic && made->spec.place != NULL) {
        engine_destroy(&made->engine);
        stay_on_host(made);
        status = engine_create(&made->engine, made->comm, &made->config, made->loss, &made->spec,
                               samples_max, made->seed);
    }
    if (status == RING_ERR_MEMORY)
        advise_on_memory(made, samples_max);
    RING_TRY(status);
    return agree(made->comm, start(made, readers));
}

void trainer_free(trainer *made)
{
    free(made->run.before);
    engine_destroy(&made->engine);
    cuda_place_close(&made->gpu);
    sampler_destroy(&made->sampler);
    shares_free(&made->shares);
    dataset_free(&made->train);
    dataset_free(&made->test);
    model_spec_free(&made->spec);
}
