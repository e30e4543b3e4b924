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

/** One update. @param params, grads  [count]; @param scale  multiplies the gradients. */
void optimizer_step(train_optimizer *optimizer, float *params, const float *grads, double lr,
                    double scale);

/** @return the Euclidean norm of @p grads [count]. */
double optimizer_norm(const float *grads, size_t count);

/** @return what to multiply gradients of norm @p norm with so that it is at most @p most;
 *  1 if @p most is 0. As torch.nn.utils.clip_grad_norm_. */
double optimizer_clip(double norm, double most);

#endif
