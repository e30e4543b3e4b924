/* SPDX-License-Identifier: Apache-2.0
 *
 * loss: what the network is trained on, per sample, so that any split of a global batch
 * over ranks and micro-batches adds up to the same sum. Of a text each token is a row with a label
 * of its own, and a sample's loss is the mean over its tokens.
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

/** Sum over the batch of the samples' losses, in float64.
 *  @param output  [batch, classes]; @param labels [batch], each below @p classes.
 *  @param output_grad   [batch, classes], gets the gradient of that sum times @p scale
 *                 (1 / samples of the global batch gives the mean's gradient). */
double loss_sum(loss_kind kind, const float *output, const uint32_t *labels, size_t batch,
                size_t classes, double scale, float *output_grad);

/** @return how many rows have their (first) maximum at their label. */
size_t loss_correct(const float *output, const uint32_t *labels, size_t batch, size_t classes);

#endif
