/* SPDX-License-Identifier: Apache-2.0
 *
 * optimizer_factors: the factors that a step of an optimiser multiplies by. The host's kernels and
 * those of GPUs share them; each is computed in double and rounded once. C and C++ include this.
 */
#ifndef RING_OPTIMIZER_FACTORS_H
#define RING_OPTIMIZER_FACTORS_H

#include <stdbool.h>

typedef struct sgd_factors {
    float scale, weight_decay, momentum, blend, lr;
    bool nesterov, first;
} sgd_factors;

typedef struct adam_factors {
    float scale, weight_decay; /* of the gradient; weight_decay is 0 if decoupled */
    float keep;                /* of the parameter; 1 unless decoupled            */
    float blend1, beta2, blend2, rate, root, eps;
} adam_factors;

typedef struct lion_factors {
    float scale, keep, beta1, blend1, beta2, blend2, lr;
} lion_factors;

typedef struct adagrad_factors {
    float scale, weight_decay, rate, eps;
} adagrad_factors;

/* kernels.h defines the arguments. */
struct kernel_sgd;
struct kernel_adam;
struct kernel_lion;
struct kernel_adagrad;

sgd_factors sgd_factors_of(const struct kernel_sgd *args);
adam_factors adam_factors_of(const struct kernel_adam *args);
lion_factors lion_factors_of(const struct kernel_lion *args);
adagrad_factors adagrad_factors_of(const struct kernel_adagrad *args);

#endif
