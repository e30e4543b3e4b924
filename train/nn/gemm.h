/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm: the seam to the maths library, oneDNN or OpenBLAS, chosen when the program is built
 * (docs/decisions/0004-maths-library.md). All matrices are float32 and row-major.
 */
#ifndef TRAIN_GEMM_H
#define TRAIN_GEMM_H

#include <stdbool.h>
#include <stddef.h>

/** c[m,n] = op(a)[m,k] * op(b)[k,n] (+ c if @p accumulate); op transposes if asked.
 *  Rows of a, b and c as they lie in memory begin @p row_a, @p row_b, @p row_c elements apart. */
void gemm_strided(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float *a,
                  size_t row_a, const float *b, size_t row_b, bool accumulate, float *c,
                  size_t row_c);

/** The same of dense matrices. */
static inline void gemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
                        const float *a, const float *b, bool accumulate, float *c)
{
    gemm_strided(transpose_a, transpose_b, m, n, k, a, transpose_a ? m : k, b, transpose_b ? k : n,
                 accumulate, c, n);
}

/** Sets how many threads the calls of this thread use; before it, as many as the library
 *  likes. oneDNN's further threads flush subnormals from then on. */
void gemm_set_threads(int threads);

/** @return "oneDNN" or "OpenBLAS". */
const char *gemm_library(void);

#endif
