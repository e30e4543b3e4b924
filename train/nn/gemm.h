/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm: multiplies matrices with the maths library that the build chose, oneDNN or OpenBLAS
 * (docs/decisions/0004-maths-library.md). All matrices are float32 and row-major.
 */
#ifndef TRAIN_GEMM_H
#define TRAIN_GEMM_H

#include <stdbool.h>
#include <stddef.h>

/** Computes op(a) (m, k) · op(b) (k, n) and stores it in c (m, n), or adds it to c if @p accumulate
 * is set. op() is the transpose if @p transpose_a or @p transpose_b is set, else the matrix itself.
 * In memory, rows of a, b and c begin @p row_a, @p row_b and @p row_c elements apart. */
void gemm_strided(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float *a,
                  size_t row_a, const float *b, size_t row_b, bool accumulate, float *c,
                  size_t row_c);

/** As gemm_strided(), for matrices whose rows follow each other without gaps. */
static inline void gemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
                        const float *a, const float *b, bool accumulate, float *c)
{
    gemm_strided(transpose_a, transpose_b, m, n, k, a, transpose_a ? m : k, b, transpose_b ? k : n,
                 accumulate, c, n);
}

/** Sets how many threads each call uses that this thread makes; by default the library decides.
 * From then on, oneDNN's worker threads flush subnormal numbers to zero. */
void gemm_set_threads(int threads);

/** @return "oneDNN" or "OpenBLAS". */
const char *gemm_library(void);

#endif
