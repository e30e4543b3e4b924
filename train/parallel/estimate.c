/* SPDX-License-Identifier: Apache-2.0
 * The parts ask their owners. */
#include "estimate.h"

#include "errors.h"

memory_estimate estimate_memory(const train_config *config, const train_model *model,
                                const train_partition *partition, int stage)
{
    const int split = partition->ranks > 1 ? stage : 0;
    const size_t updated = split > 0 ? partition->own : partition->elements;
    zero_memory memory;
    zero_memory_plan(&memory, model, partition, &config->precision, split, 0);
    return (memory_estimate){.params = zero_param_bytes(&memory),
                             .grads = zero_grad_bytes(&memory),
                             .states = zero_master_bytes(&memory) +
                                       optimizer_needs(&config->optimizer, updated),
                             .live = zero_live_bytes(&memory),
                             .activations = model_memory_bytes(model) +
                                            model->max_batch * shape_count(&model->input) *
                                                sizeof(float)};
}

static void print_stage(const train_config *config, const train_model *model,
                        const train_partition *partition, int stage, FILE *out)
{
    const memory_estimate bytes = estimate_memory(config, model, partition, stage);
    fprintf(out, "%c %5d %13zu %13zu %13zu %13zu %13zu %13zu\n",
            stage == config->zero_stage ? '*' : ' ', stage, bytes.params, bytes.grads, bytes.states,
            bytes.live, bytes.activations,
            bytes.params + bytes.grads + bytes.states + bytes.live + bytes.activations);
}

static ring_status print_all(const train_config *config, const train_model *model,
                             const train_partition *partition, FILE *out)
{
    const int ranks = partition->ranks;
    fprintf(out,
            "memory of a rank in bytes, %d rank%s, %zu parameters, passes of up to %zu samples:\n"
            "  %5s %13s %13s %13s %13s %13s %13s\n",
            ranks, ranks == 1 ? "" : "s", model_parameters(model), model->max_batch, "stage",
            "parameters", "gradients", "states", "live buckets", "activations", "together");
    for (int stage = 0; stage <= STAGE_MAX; stage++)
        print_stage(config, model, partition, stage, out);
    return zero_memory_check(model, ranks > 1 ? (int)config->zero_stage : 0);
}

ring_status estimate_print(const train_config *config, const model_spec *spec, size_t samples_max,
                           int ranks, FILE *out)
{
    train_engine engine = {.config = config, .ranks = ranks, .pipeline.place = {.stages = 1}};
    ring_status status = engine_plan(&engine, spec, spec, samples_max);
    if (status == RING_OK)
        status = print_all(config, &engine.model, &engine.partition, out);
    engine_destroy(&engine);
    return status;
}
