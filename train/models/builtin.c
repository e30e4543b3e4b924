/* SPDX-License-Identifier: Apache-2.0
 * Defines each network as a list of layers, in the form that is usual in PyTorch. */
#include "builtin.h"

#include <string.h>

#include "errors.h"
#include "gpt.h"

/* A layer whose input is the output of the layer before it. */
typedef struct layer {
    const nn_op *op;
    op_settings settings;
} layer;

static ring_status add_layers(model_spec *spec, const layer *layers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (model_spec_add(spec, layers[i].op, &layers[i].settings) == NULL)
            return train_fail(RING_ERR_MEMORY, "no memory for the layers of %s", spec->name);
    }
    return RING_OK;
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define LINEAR(features) \
    { \
        &op_linear, \
        { \
            .outputs = (features) \
        } \
    }
#define CONV(channels, size, step, pad) \
    { \
        &op_conv2d, \
        { \
            .outputs = (channels), .kernel = (size), .stride = (step), .padding = (pad) \
        } \
    }
#define MAX_POOL(size) \
    { \
        &op_max_pool2d, \
        { \
            .kernel = (size), .stride = (size) \
        } \
    }
#define DROPOUT(p) \
    { \
        &op_dropout, \
        { \
            .probability = (p) \
        } \
    }
#define RELU \
    { \
        &op_relu, \
        { \
            0 \
        } \
    }
#define FLATTEN \
    { \
        &op_flatten, \
        { \
            0 \
        } \
    }

ring_status model_build_mlp(model_spec *spec, const char *name, const size_t *widths, int layers)
{
    model_spec_start(spec, name, (op_shape){.dim = {widths[0]}, .dims = 1});
    for (int l = 1; l <= layers; l++) {
        const layer pair[] = {LINEAR(widths[l]), RELU};
        RING_TRY(add_layers(spec, pair, l < layers ? 2 : 1));
    }
    return RING_OK;
}

static ring_status build_mlp(model_spec *spec)
{
    static const size_t widths[] = {784, 256, 64, 10};
    return model_build_mlp(spec, "mlp 784-256-64-10", widths, COUNT_OF(widths) - 1);
}

/* The network of LeCun, Bottou, Bengio and Haffner (1998), with ReLU and max pooling as is usual
 * today. Shapes: [1, 28, 28] → [6, 28, 28] → [6, 14, 14] → [16, 10, 10] → [16, 5, 5] →
 * 400-120-84-10 */
static ring_status build_lenet5(model_spec *spec)
{
    static const layer layers[] = {
        CONV(6, 5, 1, 2), RELU,        MAX_POOL(2), CONV(16, 5, 1, 0), RELU, MAX_POOL(2),
        FLATTEN,          LINEAR(120), RELU,        LINEAR(84),        RELU, LINEAR(10),
    };
    model_spec_start(spec, "lenet5", (op_shape){.dim = {1, 28, 28}, .dims = 3});
    return add_layers(spec, layers, COUNT_OF(layers));
}

/* The network of Krizhevsky, Sutskever and Hinton (2012), for the smaller images of CIFAR: with
 * kernels of 3 instead of 11 and 5, so that the planes are large enough for pooling. Shapes:
 *     [3, 32, 32] → [64, 16, 16] → [64, 8, 8] → [192, 8, 8] → [192, 4, 4] → [384, 4, 4]
 *     → [256, 4, 4] → [256, 4, 4] → [256, 2, 2] → 1024-4096-4096-10 */
static ring_status build_alexnet(model_spec *spec)
{
    static const layer layers[] = {
        CONV(64, 3, 2, 1),
        RELU,
        MAX_POOL(2),
        CONV(192, 3, 1, 1),
        RELU,
        MAX_POOL(2),
        CONV(384, 3, 1, 1),
        RELU,
        CONV(256, 3, 1, 1),
        RELU,
        CONV(256, 3, 1, 1),
        RELU,
        MAX_POOL(2),
        FLATTEN,
        DROPOUT(0.5),
        LINEAR(4096),
        RELU,
        DROPOUT(0.5),
        LINEAR(4096),
        RELU,
        LINEAR(10),
    };
    model_spec_start(spec, "alexnet", (op_shape){.dim = {3, 32, 32}, .dims = 3});
    return add_layers(spec, layers, COUNT_OF(layers));
}

static ring_status build_gpt(model_spec *spec)
{
    return model_build_gpt(spec, "gpt", &gpt_small);
}

const model_builtin model_builtins[] = {
    {"mlp", "784-256-64-10 with ReLU", build_mlp},
    {"lenet5", "LeNet-5 with ReLU and max pooling, for 1 x 28 x 28", build_lenet5},
    {"alexnet", "AlexNet for 3 x 32 x 32", build_alexnet},
    {"gpt", "GPT of 4 layers, 4 heads, 128 wide, for 64 bytes of text", build_gpt},
    {NULL, NULL, NULL},
};

ring_status model_build(model_spec *spec, const char *name)
{
    *spec = (model_spec){0};
    for (const model_builtin *builtin = model_builtins; builtin->name != NULL; builtin++) {
        if (strcmp(builtin->name, name) == 0)
            return builtin->build(spec);
    }
    return train_fail(RING_ERR_ARGUMENT,
                      "there is no model called %s; give mlp, lenet5, alexnet or gpt", name);
}
