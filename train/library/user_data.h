/* SPDX-License-Identifier: Apache-2.0
 *
 * user_data: presents samples that the library's caller provides by a callback as a data set.
 */
#ifndef TRAIN_USER_DATA_H
#define TRAIN_USER_DATA_H

#include <ring/train.h>

#include "dataset.h"
#include "op.h"

/** Samples by number, filled by a callback. */
typedef struct user_data {
    ring_train_data given;
    op_shape output; /* of the network: determines how many labels a sample has, and their range */
} user_data;

/** @param[out] dataset  borrows @p data. @return RING_OK, RING_ERR_ARGUMENT. */
ring_status user_data_open(user_data *data, const ring_train_data *given, const op_shape *input,
                           train_dataset *dataset);

/** @return RING_OK, or RING_ERR_ARGUMENT naming the first of @p labels [count] that is not one of
 *  the outputs. */
ring_status user_labels_check(const op_shape *output, const uint32_t *labels, size_t count);

/** One micro-batch that is there already. */
typedef struct user_batch {
    const float *inputs; /* [rows, features] */
    size_t features;
} user_batch;

/** @return a data set of which the next rows, whatever their numbers, are those of @p batch. */
train_dataset user_batch_open(user_batch *batch);

#endif
