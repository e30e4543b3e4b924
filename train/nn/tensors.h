/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors: lists a model's parameters. They are stored in one flat buffer, and their gradients in
 * another one at the same offsets, so that a collective or an optimiser sees one array. By default
 * tensors follow each other without gaps; a partition moves them into its buckets.
 */
#ifndef TRAIN_TENSORS_H
#define TRAIN_TENSORS_H

#include <ring/ring.h>
#include <stdbool.h>

enum { TENSOR_DIMS_MAX = 4, TENSOR_NAME_MAX = 64 };

/** Groups for optimisers: weights; tensors without weight decay (biases and norms); tables of words
 *  and places. */
typedef enum tensor_group { GROUP_DECAY, GROUP_NO_DECAY, GROUP_EMBEDDING } tensor_group;

typedef struct train_tensor {
    char name[TENSOR_NAME_MAX]; /* as torch.nn.Sequential names it: "0.weight", "0.bias" */
    ring_dtype type; /* in which it is kept between updates; nodes read and write float32 */
    tensor_group group;
    size_t shape[TENSOR_DIMS_MAX]; /* [dims], row-major */
    int dims;
    size_t count;  /* product of the shape */
    size_t offset; /* elements before it in the flat buffers; a tied tensor has its original's */
    int tie;       /* the tensor whose memory this one shares, or -1 */
    int own;       /* its number among the tensors that are not tied; or its original's */
    bool counted_elsewhere; /* other ranks have it as well, and one of them adds it to the norm */
} train_tensor;

typedef struct tensor_table {
    train_tensor *list; /* [count] */
    int count;
    int own_count;   /* tensors that are not tied */
    size_t elements; /* of the flat buffers */
} tensor_table;

/** Makes an empty table with room for @p most tensors. Free with tensors_free(). */
ring_status tensors_create(tensor_table *table, int most);
void tensors_free(tensor_table *table);

/** Appends a tensor, and fills in its count, offset and own.
 *  @param tensor  name, type, group, shape, dims, and tie, which is -1 or an earlier tensor that
 *                 is not tied itself. @return RING_ERR_CONFIG if the shapes of the two differ. */
ring_status tensors_add(tensor_table *table, const train_tensor *tensor);

/** @return the tensor called @p name, or NULL. */
train_tensor *tensors_find(const tensor_table *table, const char *name);

#endif
