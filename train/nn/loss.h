/* SPDX-License-Identifier: Apache-2.0
 *
 * loss: computes the loss that the network is trained to reduce, and its gradient. Losses are per
 * sample, so that any split of a global batch over ranks and micro-batches adds up to the same sum.
 * In a text each token is a row with a label of its own, and a sample's loss is the mean over its
 * tokens.
 */
#ifndef TRAIN_LOSS_H
#define TRAIN_LOSS_H

#include <stddef.h>
#include <stdint.h>

typedef enum loss_kind {
    LOSS_MSE,           /* mean over classes of (output - one_hot(label))^2 */
    LOSS_CROSS_ENTROPY, /* -log softmax(output)[label] */
    LOSS_KINDS
} loss_kind;

/** By loss_kind, ended by NULL. */
extern const char *const loss_names[];

/** @return the sum of the samples' losses over the batch, in float64.
 *  @param output  [batch, classes]; @param labels [batch], each below @p classes.
 *  @param[out] output_grad  [batch, classes] the gradient of that sum times @p scale; with 1 /
 *                 (samples of the global batch) it is the gradient of the mean. */
double loss_sum(loss_kind kind, const float *output, const uint32_t *labels, size_t batch,
                size_t classes, double scale, float *output_grad);

/** @return the number of rows whose (first) maximum is at their label. */
size_t loss_correct(const float *output, const uint32_t *labels, size_t batch, size_t classes);

#endif
