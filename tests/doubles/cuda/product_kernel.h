/* SPDX-License-Identifier: Apache-2.0
 * product_kernel: the matrix product that the double of cuBLASLt launches. */
#ifndef TEST_DOUBLES_PRODUCT_KERNEL_H
#define TEST_DOUBLES_PRODUCT_KERNEL_H

#include <stdint.h>

/** Of one operand, stored by columns: element (i, j) of op(x) of matrix b is at x[b * step + i *
 *  row + j * column]. */
typedef struct product_operand {
    const float *at;
    uint64_t step, row, column;
} product_operand;

/** "fake_product": result (rows, columns), stored by columns, = alpha * first (rows, inner) *
 * second (inner, columns) + beta * result + bias (rows, if any), for each of a batch; with relu,
 * the larger of that and 0, also for NaN. The sums are float32, in the order of the inner index.
 * Blocks of one thread share the columns. The workspace is overwritten. */
typedef struct product_args {
    product_operand first, second;
    float *result;
    const float *bias;
    uint64_t result_step, result_column;
    uint64_t rows, columns, inner, batch;
    float alpha, beta;
    uint64_t tf32; /* 1: operands are rounded to 10 bits of the mantissa */
    uint64_t relu;
    unsigned char *workspace;
    uint64_t workspace_bytes;
} product_args;

#endif
