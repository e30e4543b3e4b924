/* SPDX-License-Identifier: Apache-2.0
 * Adds up the memory of a rank by asking each part of the engine how much it will allocate. */
#include "estimate.h"

#include <math.h>

#include "errors.h"

memory_estimate estimate_memory(const train_engine *engine, int zero_stage)
{
    const train_config *config = engine->config;
    const train_partition *partition = &engine->partition;
    const int split = partition->ranks > 1 ? zero_stage : 0;
    const size_t updated = partition->elements[split > 0 ? LAYOUT_OWN : LAYOUT_FULL];
    zero_memory memory;
    zero_memory_plan(&memory, partition, &config->precision, split, 0);
    offload_plan(&config->offload, &memory);
    const bool in_file = config->offload.states.device == OFFLOAD_NVME;
    return (memory_estimate){.params = zero_param_bytes(&memory),
                             .grads = zero_grad_bytes(&memory),
                             .states = zero_master_bytes(&memory) +
                                       (in_file ? 0 : optimizer_needs(&config->optimizer, updated)),
                             .files = offload_bytes(config, &memory, updated),
                             .live = zero_live_bytes(&memory),
                             .activations = model_memory_bytes(&engine->model) +
                                            engine_batch_bytes(engine)};
}

static size_t total(const memory_estimate *bytes)
{
    return bytes->params + bytes->grads + bytes->states + bytes->live + bytes->activations;
}

static void print_head(const train_engine *engine, FILE *out)
{
    const int ranks = engine->ranks, stages = engine->pipeline.place.stages;
    const train_model *whole = stages > 1 ? &engine->pipeline.whole : &engine->model;
    const nn_place *place = engine->model.place;
    if (engine->tensor.ranks > 1)
        fprintf(out,
                "each of %d tensor ranks computes a share of the layers; for one tensor rank:\n",
                engine->tensor.ranks);
    fprintf(out,
            "memory per rank%s%s in bytes, %d rank%s%s, %zu parameters, passes of up to %zu "
            "sample%s:\n  %5s %13s %13s %13s %13s %13s %13s\n",
            place->is_host ? "" : " on ", place->is_host ? "" : place->name, ranks, plural(ranks),
            stages > 1 ? " per stage" : "", model_parameters(whole), engine->model.max_batch,
            plural(engine->model.max_batch), "stage", "parameters", "gradients", "states",
            "live buckets", "activations", "total");
}

/* A stage stores the activations of the micro-batches between their forward and backward passes. */
static void print_place(const train_engine *engine, FILE *out)
{
    const pipe_place *place = &engine->pipeline.place;
    const int *starts = &engine->pipeline.starts[place->stage], slots = engine->model.slot_count;
    fprintf(out,
            "stage %d of the pipeline: layers %d to %d, %zu parameters, activations of %d "
            "micro-batch%s\n",
            place->stage, starts[0], starts[1] - 1, model_parameters(&engine->model), slots,
            slots == 1 ? "" : "es");
}

/* A pipeline supports stages 0 and 1 of ZeRO only. */
static void print_rows(const train_engine *engine, FILE *out)
{
    const bool cut = engine->pipeline.place.stages > 1;
    if (cut)
        print_place(engine, out);
    for (int zero_stage = 0; zero_stage <= (cut ? 1 : ZERO_STAGE_MAX); zero_stage++) {
        const memory_estimate bytes = estimate_memory(engine, zero_stage);
        fprintf(out, "%c %5d %13zu %13zu %13zu %13zu %13zu %13zu\n",
                zero_stage == engine->config->zero_stage ? '*' : ' ', zero_stage, bytes.params,
                bytes.grads, bytes.states, bytes.live, bytes.activations, total(&bytes));
    }
    const size_t files = estimate_memory(engine, (int)engine->config->zero_stage).files;
    if (files > 0)
        fprintf(out, "offloaded in addition: %zu bytes per rank in files\n", files);
}

/* @return an engine for a rank of pipeline stage @p stage, as engine_plan() expects it. */
static train_engine engine_of(const train_config *config, const train_grid *grid, int stage)
{
    return (train_engine){.config = config,
                          .ranks = grid->shares,
                          .tensor.ranks = grid->tensors,
                          .pipeline.place = {grid->stages, stage}};
}

ring_status estimate_print(const train_config *config, const model_spec *spec, size_t samples_max,
                           const train_grid *grid, FILE *out)
{
    ring_status status = RING_OK;
    for (int s = 0; s < grid->stages && status == RING_OK; s++) {
        train_engine engine = engine_of(config, grid, s);
        status = engine_plan(&engine, spec, samples_max);
        if (status == RING_OK && s == 0)
            print_head(&engine, out);
        if (status == RING_OK)
            print_rows(&engine, out);
        engine_destroy(&engine);
    }
    return status;
}

/* @return bytes of a rank of the pipeline stage that needs the most; 0 if engine_plan() fails. */
static size_t rank_bytes(const train_config *config, const model_spec *spec, size_t samples_max,
                         const train_grid *grid)
{
    size_t most = 0;
    for (int s = 0; s < grid->stages; s++) {
        train_engine engine = engine_of(config, grid, s);
        if (engine_plan(&engine, spec, samples_max) == RING_OK) {
            const memory_estimate bytes = estimate_memory(&engine, (int)config->zero_stage);
            most = total(&bytes) > most ? total(&bytes) : most;
        }
        engine_destroy(&engine);
    }
    return most;
}

void estimate_advice(const train_config *config, const model_spec *spec, size_t samples_max,
                     const train_grid *grid, char *text, size_t room)
{
    train_config micro = *config, kept = *config, split = *config;
    model_spec shorter = *spec;
    const double gib = 0x1p30, all = (double)rank_bytes(config, spec, samples_max, grid);
    micro.micro_batch = (config->micro_batch + 1) / 2;
    shorter.input.dim[0] -= model_spec_words(spec) > 0 ? shorter.input.dim[0] / 2 : 0;
    kept.pipeline.interval = kept.pipeline.interval > 0 ? kept.pipeline.interval
                                                        : (long)sqrt(spec->count);
    split.zero_stage = grid->stages > 1 ? 1 : ZERO_STAGE_MAX;
    const struct {
        const char *key;
        const train_config *config;
        const model_spec *spec;
        long value;
    } ways[] = {
        {"train_micro_batch_size_per_gpu", &micro, spec, micro.micro_batch},
        {"block_size of the model", config, &shorter, (long)shorter.input.dim[0]},
        {"pipeline.activation_checkpoint_interval", &kept, spec, kept.pipeline.interval},
        {"zero_optimization.stage", &split, spec, split.zero_stage},
    };
    size_t used = (size_t)snprintf(text, room, "a rank needs %.2f GiB", all / gib);
    const char *before = ", but less with ";
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const double less = (double)rank_bytes(ways[i].config, ways[i].spec, samples_max, grid);
        if (less == 0.0 || less >= all || used >= room)
            continue;
        used += (size_t)snprintf(text + used, room - used, "%s%s %ld: %.2f GiB", before,
                                 ways[i].key, ways[i].value, less / gib);
        before = ", ";
    }
}
