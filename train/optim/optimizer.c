/* SPDX-License-Identifier: Apache-2.0
 * States and settings of the optimisers, handed to the kernels. */
#include "optimizer.h"

#include <kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

ring_status optimizer_create(train_optimizer *optimizer, const optimizer_config *config,
                             size_t count)
{
    memset(optimizer, 0, sizeof *optimizer);
    optimizer->config = *config;
    optimizer->count = count;
    const bool adam = config->kind != OPTIMIZER_SGD;
    const size_t bytes = count * sizeof(float);
    if (adam || config->momentum != 0.0)
        RING_TRY(train_alloc((void **)&optimizer->first, bytes, "the optimizer's state"));
    if (adam)
        RING_TRY(train_alloc((void **)&optimizer->second, bytes, "the optimizer's state"));
    return RING_OK;
}

void optimizer_destroy(train_optimizer *optimizer)
{
    free(optimizer->first);
    free(optimizer->second);
    memset(optimizer, 0, sizeof *optimizer);
}

static void step_sgd(train_optimizer *optimizer, float *params, const float *grads, double lr,
                     double scale)
{
    const optimizer_config *config = &optimizer->config;
    const kernel_sgd args = {
        .lr = lr,
        .momentum = config->momentum,
        .dampening = config->dampening,
        .weight_decay = config->weight_decay,
        .scale = scale,
        .nesterov = config->nesterov,
        .first = optimizer->step == 1,
    };
    kernel_sgd_step(params, grads, optimizer->first, optimizer->count, &args);
}

static void step_adam(train_optimizer *optimizer, float *params, const float *grads, double lr,
                      double scale)
{
    const optimizer_config *config = &optimizer->config;
    const kernel_adam args = {
        .lr = lr,
        .beta1 = config->betas[0],
        .beta2 = config->betas[1],
        .eps = config->eps,
        .weight_decay = config->weight_decay,
        .scale = scale,
        .decoupled = config->kind == OPTIMIZER_ADAMW || config->adam_w_mode,
        .bias_correction = config->bias_correction,
        .step = optimizer->step,
    };
    kernel_adam_step(params, grads, optimizer->first, optimizer->second, optimizer->count, &args);
}

void optimizer_step(train_optimizer *optimizer, float *params, const float *grads, double lr,
                    double scale)
{
    optimizer->step++;
    if (optimizer->config.kind == OPTIMIZER_SGD)
        step_sgd(optimizer, params, grads, lr, scale);
    else
        step_adam(optimizer, params, grads, lr, scale);
}

double optimizer_norm(const float *grads, size_t count)
{
    return sqrt(kernel_sum_squares(grads, count));
}

double optimizer_clip(double norm, double most)
{
    const double factor = most / (norm + 1e-6);
    return most > 0.0 && factor < 1.0 ? factor : 1.0;
}
