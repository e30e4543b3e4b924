/* SPDX-License-Identifier: Apache-2.0
 * The forward and the backward pass. Whatever touches each element of an activation once
 * (bias, ReLU, column sums) is one loop over rows that are still in the cache. */
#include "gemm.h"
#include "model.h"

#include <string.h>

/* output[row] = max(output[row] + bias, 0), the maximum only with ReLU; NaN stays NaN. */
static void add_bias(float *restrict row, const float *restrict bias, size_t out, bool relu)
{
    if (!relu) {
        for (size_t j = 0; j < out; j++)
            row[j] += bias[j];
        return;
    }
    for (size_t j = 0; j < out; j++) {
        const float value = row[j] + bias[j];
        row[j] = value < 0.0F ? 0.0F : value;
    }
}

static void layer_forward(const model_layer *layer, const float *input, size_t batch)
{
    gemm(false, true, batch, layer->out, layer->in, input, layer->weight, false, layer->output);
    for (size_t i = 0; i < batch; i++)
        add_bias(layer->output + i * layer->out, layer->bias, layer->out, layer->relu);
}

const float *model_forward(train_model *model, const float *input, size_t batch)
{
    model->input = input;
    model->batch = batch;
    for (int l = 0; l < model->layer_count; l++) {
        layer_forward(&model->layers[l], input, batch);
        input = model->layers[l].output;
    }
    return input;
}

/* delta *= (output > 0): where ReLU cut the output, no gradient passes. */
static void mask_row(float *restrict delta, const float *restrict output, size_t out)
{
    for (size_t j = 0; j < out; j++)
        delta[j] = output[j] > 0.0F ? delta[j] : 0.0F;
}

static void add_row(float *restrict sum, const float *restrict row, size_t out)
{
    for (size_t j = 0; j < out; j++)
        sum[j] += row[j];
}

/* Gradients of one layer; its delta arrives without the ReLU's mask. */
static void layer_gradients(const model_layer *layer, const float *input, size_t batch,
                            bool accumulate)
{
    if (!accumulate)
        memset(layer->bias_grad, 0, layer->out * sizeof(float));
    for (size_t i = 0; i < batch; i++) {
        float *delta = layer->delta + i * layer->out;
        if (layer->relu)
            mask_row(delta, layer->output + i * layer->out, layer->out);
        add_row(layer->bias_grad, delta, layer->out);
    }
    gemm(true, false, layer->out, layer->in, batch, layer->delta, input, accumulate,
         layer->weight_grad);
}

ring_status model_backward(train_model *model, bool accumulate, model_ready_fn *ready,
                           void *context)
{
    for (int l = model->layer_count - 1; l >= 0; l--) {
        const model_layer *layer = &model->layers[l];
        const float *input = l > 0 ? model->layers[l - 1].output : model->input;
        layer_gradients(layer, input, model->batch, accumulate);
        const ring_status status = ready != NULL ? ready(context, l) : RING_OK;
        if (status != RING_OK)
            return status;
        if (l > 0)
            gemm(false, false, model->batch, layer->in, layer->out, layer->delta, layer->weight,
                 false, model->layers[l - 1].delta);
    }
    return RING_OK;
}
