/* SPDX-License-Identifier: Apache-2.0
 * Lists all ops that a list of layers may contain, and implements the functions on shapes that all
 * ops use. */
#include <stdio.h>
#include <string.h>

#include "op.h"

const nn_op *const nn_ops[] = {&op_linear,     &op_conv2d,    &op_max_pool2d,
                               &op_avg_pool2d, &op_relu,      &op_tanh,
                               &op_gelu,       &op_flatten,   &op_dropout,
                               &op_add,        &op_embedding, &op_position_embedding,
                               &op_layer_norm, &op_attention, NULL};

const nn_op *op_find(const char *name)
{
    for (size_t i = 0; nn_ops[i] != NULL; i++) {
        if (strcmp(nn_ops[i]->name, name) == 0)
            return nn_ops[i];
    }
    return NULL;
}

size_t shape_count(const op_shape *shape)
{
    size_t count = 1;
    for (int d = 0; d < shape->dims; d++)
        count *= shape->dim[d];
    return count;
}

size_t shape_width(const op_shape *shape)
{
    return shape->dim[shape->dims - 1];
}

size_t shape_rows(const op_shape *shape)
{
    return shape_count(shape) / shape_width(shape);
}

char *shape_text(const op_shape *shape, char text[SHAPE_TEXT_MAX])
{
    int used = snprintf(text, SHAPE_TEXT_MAX, "[");
    for (int d = 0; d < shape->dims; d++)
        used += snprintf(text + used, (size_t)(SHAPE_TEXT_MAX - used), "%s%zu", d > 0 ? ", " : "",
                         shape->dim[d]);
    snprintf(text + used, (size_t)(SHAPE_TEXT_MAX - used), "]");
    return text;
}
