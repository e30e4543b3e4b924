/* SPDX-License-Identifier: Apache-2.0
 *
 * optimizer_factors: computes the factors by which a step of an optimiser multiplies. The kernels
 * of the host and of GPUs share them. Each factor is computed in double and rounded once to
 * float32. C and C++ files include this.
 */
#ifndef RING_OPTIMIZER_FACTORS_H
#define RING_OPTIMIZER_FACTORS_H

#include <stdbool.h>

typedef struct sgd_factors {
    float scale, weight_decay, momentum, blend, lr;
    bool nesterov, first;
} sgd_factors;

typedef struct adam_factors {
    float scale, weight_decay; /* for the gradient; weight_decay is 0 if decoupled */
    float keep;                /* for the parameter; 1 unless decoupled            */
    float blend1, blend2;      /* 1 - beta1, 1 - beta2                             */
    float beta2;
    float rate; /* lr / (1 - beta1^step); lr without bias correction    */
    float root; /* sqrt(1 - beta2^step); 1 without bias correction      */
    float eps;
} adam_factors;

typedef struct lion_factors {
    float scale, keep, beta1, blend1, beta2, blend2, lr;
} lion_factors;

typedef struct adagrad_factors {
    float scale, weight_decay, rate, eps;
} adagrad_factors;

/* The arguments are defined in kernels.h. */
struct kernel_sgd;
struct kernel_adam;
struct kernel_lion;
struct kernel_adagrad;

sgd_factors sgd_factors_of(const struct kernel_sgd *args);
adam_factors adam_factors_of(const struct kernel_adam *args);
lion_factors lion_factors_of(const struct kernel_lion *args);
adagrad_factors adagrad_factors_of(const struct kernel_adagrad *args);

#endif
