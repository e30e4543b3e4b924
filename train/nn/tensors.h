/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors: lists a model's parameters. All parameters are in one flat buffer, and their gradients
 * are at the same offsets in another one, so that collectives and optimisers work on one array. By
 * default tensors follow each other without gaps; a partition moves them into its buckets.
 */
#ifndef TRAIN_TENSORS_H
#define TRAIN_TENSORS_H

#include <ring/ring.h>
#include <stdbool.h>

enum { TENSOR_DIMS_MAX = 4, TENSOR_NAME_MAX = 64 };

/** Parameter groups for optimisers: weights, which decay; biases and parameters of norms, which do
 *  not; and tables of words and positions, for which the configuration decides. */
typedef enum tensor_group { GROUP_DECAY, GROUP_NO_DECAY, GROUP_EMBEDDING } tensor_group;

typedef struct train_tensor {
    char name[TENSOR_NAME_MAX]; /* as torch.nn.Sequential names it: "0.weight", "0.bias" */
    ring_dtype type;            /* type in which it is stored; nodes read and write float32 */
    tensor_group group;
    size_t shape[TENSOR_DIMS_MAX]; /* [dims], row-major */
    int dims;
    size_t count;  /* product of the shape */
    size_t offset; /* in the flat buffers, in elements; a tied tensor has its original's offset */
    int tie;       /* the tensor whose memory this one shares, or -1 */
    int own; /* number among the tensors that are not tied; a tied tensor has its original's */
    bool counted_elsewhere; /* other ranks have the same tensor, and one of them owns it: adds it to
                               the norm and saves it */
} train_tensor;

typedef struct tensor_table {
    train_tensor *list; /* [count] */
    int count;
    int own_count;   /* tensors that are not tied */
    size_t elements; /* of the flat buffers */
} tensor_table;

/** Makes an empty table with room for @p most tensors. @return RING_OK or RING_ERR_MEMORY. Free
 * with tensors_free(). */
ring_status tensors_create(tensor_table *table, int most);
void tensors_free(tensor_table *table);

/** Appends a tensor, and fills in its count, offset and own.
 *  @param tensor  name, type, group, shape, dims, and tie, which is -1 or an earlier tensor that
 *                 is not tied itself. @return RING_ERR_CONFIG if the shapes of the two differ. */
ring_status tensors_add(tensor_table *table, const train_tensor *tensor);

/** @return the tensor with the name @p name, or NULL. */
train_tensor *tensors_find(const tensor_table *table, const char *name);

#endif
