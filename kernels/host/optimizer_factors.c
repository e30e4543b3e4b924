/* SPDX-License-Identifier: Apache-2.0
 * Computes the factors of optimiser steps, which the kernels of the host and of GPUs share. Each
 * factor is computed in double and rounded once to float32. */
#include "optimizer_factors.h"

#include "kernels.h"

#include <math.h>

sgd_factors sgd_factors_of(const kernel_sgd *args)
{
    return (sgd_factors){
        .scale = (float)args->scale,
        .weight_decay = (float)args->weight_decay,
        .momentum = (float)args->momentum,
        .blend = (float)(1 - args->dampening),
        .lr = (float)args->lr,
        .nesterov = args->nesterov,
        .first = args->first,
    };
}

adam_factors adam_factors_of(const kernel_adam *args)
{
    const double step = (double)args->step, decay = args->weight_decay;
    const double unbias1 = args->bias_correction ? 1 - pow(args->beta1, step) : 1;
    const double unbias2 = args->bias_correction ? 1 - pow(args->beta2, step) : 1;
    return (adam_factors){
        .scale = (float)args->scale,
        .weight_decay = args->decoupled ? 0 : (float)decay,
        .keep = args->decoupled ? (float)(1 - args->lr * decay) : 1,
        .blend1 = (float)(1 - args->beta1),
        .beta2 = (float)args->beta2,
        .blend2 = (float)(1 - args->beta2),
        .rate = (float)(args->lr / unbias1),
        .root = (float)sqrt(unbias2),
        .eps = (float)args->eps,
    };
}

lion_factors lion_factors_of(const kernel_lion *args)
{
    return (lion_factors){
        .scale = (float)args->scale,
        .keep = (float)(1 - args->lr * args->weight_decay),
        .beta1 = (float)args->beta1,
        .blend1 = (float)(1 - args->beta1),
        .beta2 = (float)args->beta2,
        .blend2 = (float)(1 - args->beta2),
        .lr = (float)args->lr,
    };
}

adagrad_factors adagrad_factors_of(const kernel_adagrad *args)
{
    return (adagrad_factors){
        .scale = (float)args->scale,
        .weight_decay = (float)args->weight_decay,
        .rate = (float)(args->lr / (1 + (double)(args->step - 1) * args->lr_decay)),
        .eps = (float)args->eps,
    };
}
