/* SPDX-License-Identifier: Apache-2.0
 *
 * optimizer: SGD, Adam and AdamW over one flat range of parameters, and clipping by the
 * global norm. The arithmetic is in the kernels; here are the states and the settings.
 */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H

#include "config.h"

typedef struct train_optimizer {
    optimizer_config config;
    size_t count;
    float *first, *second; /* momentum buffer, or Adam's two moments; NULL if not needed */
    long step;             /* updates done */
} train_optimizer;

ring_status optimizer_create(train_optimizer *optimizer, const optimizer_config *config,
                             size_t count);
void optimizer_destroy(train_optimizer *optimizer);

/** A range of what an optimiser updates: its states lie at @p at. */
typedef struct optimizer_range {
    size_t at, count;
    float *params;      /* [count] */
    const float *grads; /* [count] */
} optimizer_range;

/** Begins the next update, which takes each range once. */
void optimizer_begin(train_optimizer *optimizer);

/** The update of one range. @param scale  multiplies the gradients. */
void optimizer_step(train_optimizer *optimizer, const optimizer_range *range, double lr,
                    double scale);

/** @return bytes of the states. */
size_t optimizer_bytes(const train_optimizer *optimizer);

/** @return the sum of squares of @p values [count], in float64: blocks of 4096 one after another,
 *  so that whoever holds a part gets the same bits as whoever holds more. */
double optimizer_sum_squares(const float *values, size_t count);

/** @return what to multiply gradients of norm @p norm with so that it is at most @p most;
 *  1 if @p most is 0. As torch.nn.utils.clip_grad_norm_. */
double optimizer_clip(double norm, double most);

#endif
