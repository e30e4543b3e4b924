/* SPDX-License-Identifier: Apache-2.0
 * The seam on OpenBLAS. */
#include "gemm.h"

#include <cblas.h>

static CBLAS_TRANSPOSE transposed(bool transpose)
{
    return transpose ? CblasTrans : CblasNoTrans;
}

void gemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float *a,
          const float *b, bool accumulate, float *c)
{
    const int row_a = (int)(transpose_a ? m : k), row_b = (int)(transpose_b ? k : n);
    cblas_sgemm(CblasRowMajor, transposed(transpose_a), transposed(transpose_b), (int)m, (int)n,
                (int)k, 1.0F, a, row_a, b, row_b, accumulate ? 1.0F : 0.0F, c, (int)n);
}

void gemm_set_threads(int threads)
{
    openblas_set_num_threads(threads);
}

const char *gemm_library(void)
{
    return "OpenBLAS";
}
