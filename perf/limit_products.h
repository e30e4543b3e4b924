/* SPDX-License-Identifier: Apache-2.0
 *
 * limit_products: times only the matrix products of a training step, with the maths library that
 * ringtrain's layers use. No program that trains the same network with this library can be faster.
 */
#ifndef PERF_LIMIT_PRODUCTS_H
#define PERF_LIMIT_PRODUCTS_H

#include <stddef.h>

typedef struct products_result {
    double us;    /* median time of a step */
    double flops; /* floating-point operations of a step */
} products_result;

/** Times the products of the linear layers of model @p name, as in ringtrain --model, for a step of
 *  @p batch samples on one thread: forward, then backward for parameters and inputs.
 *  @return a negative time after a failure, whose reason is on stderr. */
products_result limit_products(const char *name, size_t batch, int iters, int warmup);

#endif
