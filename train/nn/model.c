/* SPDX-License-Identifier: Apache-2.0
 * Shapes, memory and names of the layer chain, and its initial parameters. */
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "random.h"

/* Rows of matrices start at cache lines if the widths are multiples of 16. */
static size_t padded(size_t count)
{
    return (count + 15) / 16 * 16;
}

static ring_status allocate_activations(train_model *model)
{
    size_t total = 0;
    for (int l = 0; l < model->layer_count; l++)
        total += 2 * padded(model->max_batch * model->layers[l].out);
    RING_TRY(train_alloc((void **)&model->memory, total * sizeof(float), "activations"));
    float *next = model->memory;
    for (int l = 0; l < model->layer_count; l++) {
        model_layer *layer = &model->layers[l];
        layer->output = next;
        layer->delta = next + padded(model->max_batch * layer->out);
        next = layer->delta + padded(model->max_batch * layer->out);
    }
    return RING_OK;
}

ring_status model_create(train_model *model, const size_t *widths, int layer_count,
                         size_t max_batch)
{
    memset(model, 0, sizeof *model);
    if (layer_count < 1 || layer_count > MODEL_LAYERS_MAX)
        return train_fail(RING_ERR_ARGUMENT, "a model has 1 to %d layers, not %d", MODEL_LAYERS_MAX,
                          layer_count);
    model->layer_count = layer_count;
    model->max_batch = max_batch;
    for (int l = 0; l < layer_count; l++) {
        model_layer *layer = &model->layers[l];
        layer->in = widths[l];
        layer->out = widths[l + 1];
        layer->relu = l + 1 < layer_count;
        model->param_count += layer->out * layer->in + layer->out;
    }
    return allocate_activations(model);
}

void model_destroy(train_model *model)
{
    free(model->memory);
    model->memory = NULL;
}

void model_bind(train_model *model, float *params, float *grads)
{
    for (int l = 0; l < model->layer_count; l++) {
        model_layer *layer = &model->layers[l];
        const size_t weights = layer->out * layer->in;
        layer->weight = params;
        layer->bias = params + weights;
        layer->weight_grad = grads;
        layer->bias_grad = grads + weights;
        params += weights + layer->out;
        grads += weights + layer->out;
    }
}

static void fill_uniform(train_random *random, float *values, size_t count, float bound)
{
    for (size_t i = 0; i < count; i++)
        values[i] = random_uniform(random, -bound, bound);
}

void model_init(train_model *model, uint64_t seed)
{
    train_random random;
    random_seed(&random, seed);
    for (int l = 0; l < model->layer_count; l++) {
        const model_layer *layer = &model->layers[l];
        const float bound = (float)(1.0 / sqrt((double)layer->in));
        fill_uniform(&random, layer->weight, layer->out * layer->in, bound);
        fill_uniform(&random, layer->bias, layer->out, bound);
    }
}

size_t model_tensors(const train_model *model, model_tensor *tensors)
{
    size_t offset = 0;
    for (int l = 0; l < model->layer_count && tensors != NULL; l++) {
        const model_layer *layer = &model->layers[l];
        const int module = 2 * l; /* the ReLU between has a number too */
        model_tensor *weight = &tensors[(ptrdiff_t)2 * l], *bias = weight + 1;
        *weight = (model_tensor){.offset = offset,
                                 .count = layer->out * layer->in,
                                 .shape = {layer->out, layer->in},
                                 .dims = 2};
        *bias = (model_tensor){.offset = offset + weight->count,
                               .count = layer->out,
                               .shape = {layer->out},
                               .dims = 1};
        snprintf(weight->name, sizeof weight->name, "%d.weight", module);
        snprintf(bias->name, sizeof bias->name, "%d.bias", module);
        offset = bias->offset + bias->count;
    }
    return 2 * (size_t)model->layer_count;
}
