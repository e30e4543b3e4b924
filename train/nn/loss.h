/* SPDX-License-Identifier: Apache-2.0
 *
 * loss: computes the loss that training minimizes, and its gradient. Losses are sums over samples,
 * so that the sum of a global batch does not depend on how it is divided among ranks and
 * micro-batches. A row is a sample, or for text a token, which has a label of its own; the caller
 * divides by the number of tokens.
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

/** Names of the kinds, followed by NULL. */
extern const char *const loss_names[];

/** @return the sum of the losses of all rows, in float64.
 *  @param output  [batch, classes]
 *  @param labels  [batch], each below @p classes
 *  @param scale  factor of the gradient; with 1 / (rows of the global batch), the gradient is that
 *  of the mean
 *  @param[out] output_grad  [batch, classes] the gradient of the sum, times @p scale. */
double loss_sum(loss_kind kind, const float *output, const uint32_t *labels, size_t batch,
                size_t classes, double scale, float *output_grad);

/** @return the number of rows that are classified correctly: the first of the largest outputs is
 * that of the label. */
size_t loss_correct(const float *output, const uint32_t *labels, size_t batch, size_t classes);

#endif
