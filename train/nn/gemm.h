/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm: the seam to the maths library, oneDNN or OpenBLAS, chosen when the program is built
 * (docs/decisions/0004-maths-library.md). All matrices are float32, row-major and dense.
 */
#ifndef TRAIN_GEMM_H
#define TRAIN_GEMM_H

#include <stdbool.h>
#include <stddef.h>

/** c[m,n] = op(a)[m,k] * op(b)[k,n] (+ c if @p accumulate); op transposes if asked. */
void gemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float *a,
          const float *b, bool accumulate, float *c);

/** Sets how many threads the calls of this thread use; before it, as many as the library
 *  likes. */
void gemm_set_threads(int threads);

/** @return "oneDNN" or "OpenBLAS". */
const char *gemm_library(void);

#endif
