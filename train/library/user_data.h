/* SPDX-License-Identifier: Apache-2.0
 *
 * user_data: presents samples of the library's caller as a data set of the engine: either all
 * samples, which a callback provides by their numbers, or one micro-batch, which is already in
 * memory.
 */
#ifndef TRAIN_USER_DATA_H
#define TRAIN_USER_DATA_H

#include <ring/train.h>

#include "dataset.h"
#include "op.h"

/** Samples that a callback provides. */
typedef struct user_data {
    ring_train_data given; /* the callback */
    op_shape output; /* the network's output, which determines the number of labels of a sample
                        and their range; set before the first sample is read */
} user_data;

/** @param input  shape of a sample
 *  @param[out] dataset  borrows @p data; empty if given->count is 0
 *  @return RING_OK, or RING_ERR_ARGUMENT: there is no callback, or there are too many samples. */
ring_status user_data_open(user_data *data, const ring_train_data *given, const op_shape *input,
                           train_dataset *dataset);

/** Checks that each of @p labels [count] is below the width of @p output.
 *  @return RING_OK, or RING_ERR_ARGUMENT: a label is too large. */
ring_status user_labels_check(const op_shape *output, const uint32_t *labels, size_t count);

/** One micro-batch in the caller's memory. */
typedef struct user_batch {
    const float *inputs; /* [rows, features] */
    size_t features;
} user_batch;

/** @return a data set that returns the rows of @p batch, whatever sample numbers are requested. It
 *  borrows @p batch, whose inputs change from call to call. */
train_dataset user_batch_open(user_batch *batch);

#endif
