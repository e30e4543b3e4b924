/* SPDX-License-Identifier: Apache-2.0
 *
 * model: a chain of linear layers with ReLU between them, forward and backward.
 * Parameters and gradients live in two flat buffers of the caller, tensor after tensor
 * without gaps (weight [out, in], bias [out], next layer), so that a collective or an
 * optimiser sees one array. Activations are allocated once; a step allocates nothing.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <ring/ring.h>
#include <stdbool.h>

enum { MODEL_LAYERS_MAX = 8 };

/** One linear layer; shapes in elements. */
typedef struct model_layer {
    size_t in, out;
    bool relu;
    float *weight, *bias;           /* [out, in], [out]; in the caller's parameters */
    float *weight_grad, *bias_grad; /* the same in the caller's gradients */
    float *output;                  /* [batch, out], after ReLU */
    float *delta;                   /* [batch, out], gradient of the loss by the output */
} model_layer;

typedef struct train_model {
    model_layer layers[MODEL_LAYERS_MAX];
    int layer_count;
    size_t max_batch;
    size_t param_count; /* elements of all tensors */
    const float *input; /* [batch, in] of the latest forward; borrowed until backward */
    size_t batch;
    float *memory; /* all outputs and deltas */
} train_model;

/** A tensor of the model, counted weight, bias, weight, bias, … */
typedef struct model_tensor {
    char name[24]; /* as torch.nn.Sequential names it: "0.weight", "0.bias", "2.weight" */
    size_t offset, count;
    size_t shape[2];
    int dims;
} model_tensor;

/** @param widths  [layer_count + 1]: inputs, hidden units, outputs. ReLU after all layers
 *                 but the last. */
ring_status model_create(train_model *model, const size_t *widths, int layer_count,
                         size_t max_batch);
void model_destroy(train_model *model);

/** Places the tensors: @p params and @p grads have model->param_count elements each. */
void model_bind(train_model *model, float *params, float *grads);

/** Fills the parameters with PyTorch's default initialisation of nn.Linear after
 *  torch.manual_seed(seed): uniform within ±1/sqrt(in), bit for bit. */
void model_init(train_model *model, uint64_t seed);

/** @return the number of tensors; fills @p tensors [2 * layer_count] if not NULL. */
size_t model_tensors(const train_model *model, model_tensor *tensors);

/** @param input  [batch, in]. @return the last layer's output [batch, out]; the loss writes
 *  its gradient to the last layer's delta. */
const float *model_forward(train_model *model, const float *input, size_t batch);

/** Told that the gradients of layer @p layer are final; called from the last layer to the
 *  first while earlier ones are still to be computed. */
typedef ring_status model_ready_fn(void *context, int layer);

/** Computes all gradients from the last layer's delta.
 *  @param accumulate  add to the gradients instead of replacing them.
 *  @param ready  may be NULL; its failure ends the pass. */
ring_status model_backward(train_model *model, bool accumulate, model_ready_fn *ready,
                           void *context);

#endif
