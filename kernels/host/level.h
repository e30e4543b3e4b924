/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the kernels of one level. Each level_*.c includes this once, after it has defined
 *     LEVEL_TABLE               the name of its table
 *     LEVEL_BYTES               bytes of a vector
 *     LEVEL_STREAM(to, vector)  stores a vector around the cache; `to` is aligned
 *     LEVEL_FENCE()             orders such stores before later ones
 *     LEVEL_U16_WIDEN, LEVEL_F16_WIDEN, LEVEL_F16_NARROW
 *                               casts of a vector, if the CPU has instructions for them
 * Everything except the table is static. The compiler must neither fuse nor reorder operations
 * (-ffp-contract=off, no -ffast-math), so that all levels compute the same bits. */
#ifndef KERNEL_LEVEL_H
#define KERNEL_LEVEL_H

#include "kernel_table.h"

#include <math.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

#include "cast.h"
#include "fold.h"
#include "layer_kernels.h"
#include "optimizer_kernels.h"

const kernel_table LEVEL_TABLE = {
    .fold = fold,
    .scale = scale,
    .f16_to_f32 = f16_to_f32,
    .f32_to_f16 = f32_to_f16,
    .bf16_to_f32 = bf16_to_f32,
    .f32_to_bf16 = f32_to_bf16,
    .bytes_to_unit = bytes_to_unit,
    .sum_squares = sum_squares,
    .sgd_step = sgd_step,
    .momentum_step = momentum_step,
    .adam_step = adam_step,
    .lion_step = lion_step,
    .adagrad_step = adagrad_step,
    .relu = relu,
    .relu_gradient = relu_gradient,
    .add_to_rows = add_to_rows,
    .add_rows = add_rows,
};

#endif
