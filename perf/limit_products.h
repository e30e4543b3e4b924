/* SPDX-License-Identifier: Apache-2.0
 *
 * limit_products: the matrix products of a training step alone, by the maths library that
 * ringtrain's layers use: nothing that trains the same network with it can be faster.
 */
#ifndef PERF_LIMIT_PRODUCTS_H
#define PERF_LIMIT_PRODUCTS_H

#include <stddef.h>

typedef struct products_result {
    double us;    /* of a step, the median */
    double flops; /* of a step */
} products_result;

/** Times the products of the linear layers of @p name (as ringtrain --model knows it) for a step of
 *  @p batch samples on one thread: forward, and backward for parameters and inputs, in the order of
 *  a step. @return a negative time after a line on stderr if it cannot be done. */
products_result limit_products(const char *name, size_t batch, int iters, int warmup);

#endif
