/* SPDX-License-Identifier: Apache-2.0
 * States and settings of the optimisers, handed to the kernels. */
#include "optimizer.h"

#include <kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

enum { BLOCK = 4096 };

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

/* States that there are, from the range's first. */
static float *at(float *states, const optimizer_range *range)
{
    return states != NULL ? states + range->at : NULL;
}

static void step_sgd(const train_optimizer *optimizer, const optimizer_range *range, double lr,
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
    kernel_sgd_step(range->params, range->grads, at(optimizer->first, range), range->count, &args);
}

static void step_adam(const train_optimizer *optimizer, const optimizer_range *range, double lr,
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
    kernel_adam_step(range->params, range->grads, at(optimizer->first, range),
                     at(optimizer->second, range), range->count, &args);
}

void optimizer_begin(train_optimizer *optimizer)
{
    optimizer->step++;
}

void optimizer_step(train_optimizer *optimizer, const optimizer_range *range, double lr,
                    double scale)
{
    if (optimizer->config.kind == OPTIMIZER_SGD)
        step_sgd(optimizer, range, lr, scale);
    else
        step_adam(optimizer, range, lr, scale);
}

size_t optimizer_bytes(const train_optimizer *optimizer)
{
    const size_t states = (optimizer->first != NULL) + (optimizer->second != NULL);
    return states * optimizer->count * sizeof(float);
}

double optimizer_sum_squares(const float *values, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i += BLOCK)
        sum += kernel_sum_squares(values + i, count - i < BLOCK ? count - i : BLOCK);
    return sum;
}

double optimizer_clip(double norm, double most)
{
    const double factor = most / (norm + 1e-6);
    return most > 0.0 && factor < 1.0 ? factor : 1.0;
}
