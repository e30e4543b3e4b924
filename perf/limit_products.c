/* SPDX-License-Identifier: Apache-2.0
 * Multiplies the matrices of a training step: they have the shapes of the layers and separate
 * memory, but arbitrary values. */
#include "limit_products.h"
#include "stopwatch.h"

#include <builtin.h>
#include <errors.h>
#include <gemm.h>
#include <model.h>
#include <stdio.h>

/* The matrices of a layer: in and in_grad are [batch, inputs]; weight and weight_grad are
 * [outputs, inputs]; out is [batch, outputs], and is used as its own gradient, too. */
typedef struct product_layer {
    size_t batch, inputs, outputs;
    bool
        wants_grad; /* needs the gradient of its input, because layers with parameters precede it */
    float *in, *weight, *out, *in_grad, *weight_grad;
} product_layer;

typedef struct product_step {
    product_layer *layers; /* [count] */
    int count;
} product_step;

/* Uses normal numbers, because subnormal numbers would be slower than those of a training. */
static float *make_matrix(size_t count)
{
    float *matrix = malloc(count * sizeof *matrix);
    for (size_t i = 0; matrix != NULL && i < count; i++)
        matrix[i] = 0.5F + (float)(i % 7) / 8.0F;
    return matrix;
}

static bool add_layer(product_step *step, const train_model *model, int number, size_t batch)
{
    product_layer *layer = &step->layers[step->count];
    const model_node *node = &model->nodes[number];
    const int from = node->inputs[0];
    const size_t inputs = node->use.in[0].dim[0], outputs = node->use.out.dim[0];
    *layer = (product_layer){.batch = batch,
                             .inputs = inputs,
                             .outputs = outputs,
                             .wants_grad = from != MODEL_INPUT && model->nodes[from].wants_grad,
                             .in = make_matrix(batch * inputs),
                             .weight = make_matrix(outputs * inputs),
                             .out = make_matrix(batch * outputs),
                             .in_grad = make_matrix(batch * inputs),
                             .weight_grad = make_matrix(outputs * inputs)};
    step->count++;
    return layer->in != NULL && layer->weight != NULL && layer->out != NULL &&
           layer->in_grad != NULL && layer->weight_grad != NULL;
}

static void free_step(product_step *step)
{
    for (int i = 0; i < step->count; i++) {
        const product_layer *layer = &step->layers[i];
        free(layer->in);
        free(layer->weight);
        free(layer->out);
        free(layer->in_grad);
        free(layer->weight_grad);
    }
    free(step->layers);
}

static double flops_of(const product_step *step)
{
    double flops = 0;
    for (int i = 0; i < step->count; i++) {
        const product_layer *layer = &step->layers[i];
        const int products = layer->wants_grad ? 3 : 2;
        flops += 2.0 * products * (double)(layer->batch * layer->inputs * layer->outputs);
    }
    return flops;
}

/* Makes the products in the order of a step: forward through all layers, then backward. */
static void multiply(const product_step *step)
{
    for (int i = 0; i < step->count; i++) {
        const product_layer *l = &step->layers[i];
        gemm(false, true, l->batch, l->outputs, l->inputs, l->in, l->weight, false, l->out);
    }
    for (int i = step->count - 1; i >= 0; i--) {
        const product_layer *l = &step->layers[i];
        gemm(true, false, l->outputs, l->inputs, l->batch, l->out, l->in, false, l->weight_grad);
        if (l->wants_grad)
            gemm(false, false, l->batch, l->inputs, l->outputs, l->out, l->weight, false,
                 l->in_grad);
    }
}

static double time_step(const product_step *step, int iters, int warmup)
{
    double *times = malloc((size_t)iters * sizeof *times);
    for (int i = -warmup; i < iters && times != NULL; i++) {
        const double start = stopwatch_us();
        multiply(step);
        if (i >= 0)
            times[i] = stopwatch_us() - start;
    }
    const double us = times != NULL ? stopwatch_median(times, (size_t)iters) : -1;
    free(times);
    return us;
}

static products_result measure(const train_model *model, size_t batch, int iters, int warmup)
{
    product_step step = {.layers = calloc((size_t)model->node_count, sizeof *step.layers)};
    products_result result = {.us = -1};
    bool made = step.layers != NULL;
    for (int n = 0; n < model->node_count && made; n++)
        if (model->nodes[n].use.op == &op_linear)
            made = add_layer(&step, model, n, batch);
    if (made && step.count > 0)
        result = (products_result){time_step(&step, iters, warmup), flops_of(&step)};
    if (result.us < 0)
        fprintf(stderr, "ringlimit: %s: %s\n", model->name,
                step.layers != NULL && step.count == 0 ? "the model has no linear layer to time"
                                                       : "not enough memory for its matrices");
    free_step(&step);
    return result;
}

products_result limit_products(const char *name, size_t batch, int iters, int warmup)
{
    model_spec spec = {.count = 0};
    train_model model = {.node_count = 0};
    products_result result = {.us = -1};
    gemm_set_threads(1);
    if (model_build(&spec, name) != RING_OK || model_create(&model, &spec, 1, 1) != RING_OK)
        fprintf(stderr, "ringlimit: %s\n", train_error());
    else
        result = measure(&model, batch, iters, warmup);
    model_destroy(&model);
    model_spec_free(&spec);
    return result;
}
