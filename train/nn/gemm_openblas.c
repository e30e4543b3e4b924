/* SPDX-License-Identifier: Apache-2.0
 * Calls OpenBLAS through its CBLAS interface to multiply matrices that are row-major. */
#include "gemm.h"

#include <cblas.h>

static CBLAS_TRANSPOSE transposed(bool transpose)
{
    return transpose ? CblasTrans : CblasNoTrans;
}

void gemm_strided(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float *a,
                  size_t row_a, const float *b, size_t row_b, bool accumulate, float *c,
                  size_t row_c)
{
    cblas_sgemm(CblasRowMajor, transposed(transpose_a), transposed(transpose_b), (int)m, (int)n,
                (int)k, 1.0F, a, (int)row_a, b, (int)row_b, accumulate ? 1.0F : 0.0F, c,
                (int)row_c);
}

void gemm_set_threads(int threads)
{
    openblas_set_num_threads(threads);
}

const char *gemm_library(void)
{
    return "OpenBLAS";
}
