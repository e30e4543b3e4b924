/* SPDX-License-Identifier: Apache-2.0
 * Cuts a network into stages, maps tensors between the whole network and a stage, and gathers the
 * parameters of all stages. */
#include "pipeline.h"

#include <stdlib.h>

#include "errors.h"
#include "model_part.h"
#include "stages.h"

bool pipeline_is_first(const train_pipeline *pipeline)
{
    return pipeline->place.stage == 0;
}

bool pipeline_is_last(const train_pipeline *pipeline)
{
    return pipeline->place.stage == pipeline->place.stages - 1;
}

ring_status pipeline_create(train_pipeline *pipeline, const pipeline_config *config,
                            pipe_place place, ring_comm *comm, const model_spec *spec,
                            model_spec *part)
{
    *pipeline = (train_pipeline){.place = place, .comm = comm};
    train_model *whole = &pipeline->whole;
    RING_TRY(train_alloc((void **)&pipeline->starts,
                         (size_t)(place.stages + 1) * sizeof *pipeline->starts, "the stages"));
    RING_TRY(model_plan(whole, spec));
    RING_TRY(train_alloc((void **)&whole->params,
                         (size_t)whole->tensors.count * sizeof *whole->params, "tensors"));
    RING_TRY(train_alloc((void **)&whole->grads,
                         (size_t)whole->tensors.count * sizeof *whole->grads, "tensors"));
    RING_TRY(train_alloc((void **)&pipeline->locals,
                         (size_t)whole->tensors.count * sizeof *pipeline->locals, "tensors"));
    RING_TRY(stages_cut(whole, config->partition, place.stages, pipeline->starts));
    RING_TRY(pipe_ties_find(&pipeline->ties, whole, pipeline->starts, place.stage));
    const int *starts = &pipeline->starts[place.stage];
    return model_part_spec(part, spec, whole, starts[0], starts[1]);
}

void pipeline_destroy(train_pipeline *pipeline)
{
    pipe_ties_leave(&pipeline->ties);
    free(pipeline->starts);
    free(pipeline->locals);
    model_destroy(&pipeline->whole);
    *pipeline = (train_pipeline){0};
}

ring_status pipeline_join(train_pipeline *pipeline)
{
    return pipe_ties_join(&pipeline->ties, pipeline->place.stage, pipeline->comm);
}

/* Maps tensor @p number of the whole network, or its original if it is tied, to tensor @p local of
 * this stage. Tensors that are tied within the stage are skipped. */
static void find_tensor(train_pipeline *pipeline, const tensor_table *tensors,
                        const train_partition *partition, int local, int number)
{
    train_tensor *tensor = &tensors->list[local];
    const int tie = pipeline->whole.tensors.list[number].tie;
    if (tensor->tie >= 0)
        return;
    const int original = tie >= 0 ? tie : number;
    pipeline->locals[original] = local;
    pipe_tie *shared = pipe_ties_of(&pipeline->ties, original);
    if (shared == NULL)
        return;
    tensor->counted_elsewhere = shared->copied;
    shared->offset = tensor->offset;
    int b = 0;
    while (tensor->offset >= partition->buckets[b].at[LAYOUT_FULL] + partition->buckets[b].count)
        b++;
    partition->buckets[b].is_shared = true;
}

void pipeline_find(train_pipeline *pipeline, const train_model *model,
                   const train_partition *partition)
{
    const int first = pipeline->starts[pipeline->place.stage],
              end = pipeline->starts[pipeline->place.stage + 1];
    for (int t = 0; t < pipeline->whole.tensors.count; t++)
        pipeline->locals[t] = -1;
    for (int n = first; n < end; n++) {
        const model_node *from = &model->nodes[model_part_node(first, n)];
        for (int t = 0; t < from->use.tensor_count; t++)
            find_tensor(pipeline, &model->tensors, partition, from->tensors[t],
                        pipeline->whole.nodes[n].tensors[t]);
    }
}

void pipeline_place(train_pipeline *pipeline, const train_model *model)
{
    for (int t = 0; t < pipeline->whole.tensors.count; t++) {
        const int local = pipeline->locals[t];
        if (local >= 0)
            model_place(&pipeline->whole, t, model->params[local], model->grads[local]);
    }
}

int pipeline_local(const train_pipeline *pipeline, int tensor)
{
    return pipeline->locals != NULL ? pipeline->locals[tensor] : tensor;
}

/* ---- Over the stages ----------------------------------------------------------------------- */

/* Broadcasts the tensors of one node from the stage that has the node. */
static ring_status gather_node(const train_pipeline *pipeline, int node,
                               const tensor_table *tensors, const float *own, float *params)
{
    const train_model *whole = &pipeline->whole;
    const int stage = stages_of(pipeline->starts, node);
    for (int t = 0; t < whole->nodes[node].use.tensor_count; t++) {
        const int number = whole->nodes[node].tensors[t], local = pipeline->locals[number];
        const train_tensor *tensor = &whole->tensors.list[number];
        const float *from = local >= 0 ? own + tensors->list[local].offset : NULL;
        if (tensor->tie < 0)
            RING_TRY(train_ring(pipeline->comm,
                                ring_broadcast(from, params + tensor->offset, tensor->count,
                                               RING_FLOAT32, stage, pipeline->comm, NULL)));
    }
    return RING_OK;
}

ring_status pipeline_gather(const train_pipeline *pipeline, const tensor_table *tensors,
                            const float *own, float *params)
{
    for (int n = 0; n < pipeline->whole.node_count; n++)
        RING_TRY(gather_node(pipeline, n, tensors, own, params));
    return RING_OK;
}
