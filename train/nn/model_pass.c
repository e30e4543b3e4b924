/* SPDX-License-Identifier: Apache-2.0
 * Runs the forward and the backward pass over a range of nodes. Backward computes a node's
 * parameter gradients first, then the gradients of its inputs. */
#include "errors.h"
#include "model.h"

/* @return the slot's memory, or the memory that all segments share. */
static unsigned char *memory_of(const train_model *model, int slot, const model_node *owner)
{
    return owner->keeps_memory ? model->slots[slot].memory : model->shared;
}

float *model_value(const train_model *model, int slot, int node)
{
    if (node == MODEL_INPUT || model->nodes[node].memory == MODEL_INPUT)
        return (float *)model->slots[slot].batch.input; /* views share it but never write to it */
    const model_node *owner = &model->nodes[model->nodes[node].memory];
    return (void *)(memory_of(model, slot, owner) + owner->value_at);
}

float *model_value_grad(const train_model *model, int slot, int node)
{
    const model_node *owner = &model->nodes[model->nodes[node].memory];
    return (void *)(memory_of(model, slot, owner) + owner->grad_at);
}

const float *model_output(const train_model *model, int slot)
{
    return model_value(model, slot, model->node_count - 1);
}

ring_status model_load(train_model *model, int slot, const model_batch *batch)
{
    model->slots[slot].batch = *batch;
    for (int n = 0; n < model->node_count; n++) {
        op_use *use = &model->nodes[n].use;
        if (use->op->prepare != NULL && model->place->is_host)
            RING_TRY(use->op->prepare(use, batch->rows));
    }
    return RING_OK;
}

/* @return the operands of node @p number that both passes use. */
static op_run run_of(const train_model *model, int slot, int number)
{
    const model_node *node = &model->nodes[number];
    const model_batch *batch = &model->slots[slot].batch;
    op_run run = {.place = model->place,
                  .use = &node->use,
                  .batch = batch->rows,
                  .training = batch->training,
                  .out = model_value(model, slot, number),
                  .saved = (model->interval > 0 ? model->shared : model->slots[slot].memory) +
                           node->saved_at,
                  .scratch = model->scratch,
                  .scratch_beside = model->scratch_beside,
                  .random = batch->random};
    for (int k = 0; k < node->use.op->inputs; k++)
        run.in[k] = model_value(model, slot, node->inputs[k]);
    for (int t = 0; t < node->use.tensor_count; t++)
        run.params[t] = model->params[node->tensors[t]];
    return run;
}

void model_forward(train_model *model, int slot, int first, int end)
{
    for (int n = first; n < end; n++) {
        const op_run run = run_of(model, slot, n);
        model->nodes[n].functions->forward(&run);
    }
}

/* ---- Backward ------------------------------------------------------------------------------ */

/* Computes the gradients of the node's parameters. */
static void compute_grads(const train_model *model, const model_node *node, op_run *run,
                          bool accumulate)
{
    if (node->use.tensor_count == 0)
        return;
    for (int t = 0; t < node->use.tensor_count; t++) {
        run->grads[t] = model->grads[node->tensors[t]];
        run->add[t] = accumulate || node->adds_grad[t];
    }
    node->functions->params(run);
}

static bool wants_grad(const train_model *model, int node)
{
    return node != MODEL_INPUT && model->nodes[node].wants_grad;
}

/* Computes the gradients of the node's inputs. A gradient that must be added to that of another
 * node is first computed in spare memory. */
static void compute_value_grads(const train_model *model, int slot, const model_node *node,
                                op_run *run)
{
    bool wanted = false;
    for (int k = 0; k < node->use.op->inputs; k++) {
        if (!wants_grad(model, node->inputs[k]))
            continue;
        wanted = true;
        run->in_grad[k] = node->adds_input_grad[k] ? model->spare[k]
                                                   : model_value_grad(model, slot, node->inputs[k]);
    }
    if (wanted)
        node->functions->inputs(run);
    for (int k = 0; k < node->use.op->inputs; k++) {
        if (!node->adds_input_grad[k] || run->in_grad[k] == NULL)
            continue;
        model->place->add(model->place, model_value_grad(model, slot, node->inputs[k]),
                          run->in_grad[k], run->batch * shape_count(&node->use.in[k]));
    }
}

void model_backward(train_model *model, int slot, int first, int end, bool accumulate)
{
    for (int n = end - 1; n >= first; n--) {
        const model_node *node = &model->nodes[n];
        if (!node->wants_grad)
            continue;
        op_run run = run_of(model, slot, n);
        run.out_grad = model_value_grad(model, slot, n);
        compute_grads(model, node, &run, accumulate);
        compute_value_grads(model, slot, node, &run);
    }
}
