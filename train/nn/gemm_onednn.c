/* SPDX-License-Identifier: Apache-2.0
 * The seam on oneDNN, whose threads are OpenMP's. */
#include "gemm.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

static char transposed(bool transpose)
{
    return transpose ? 'T' : 'N';
}

/* dnnl_sgemm fails only on sizes and strides that cannot occur here. */
void gemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float *a,
          const float *b, bool accumulate, float *c)
{
    const dnnl_dim_t rows = (dnnl_dim_t)m, columns = (dnnl_dim_t)n, inner = (dnnl_dim_t)k;
    dnnl_sgemm(transposed(transpose_a), transposed(transpose_b), rows, columns, inner, 1.0F, a,
               transpose_a ? rows : inner, b, transpose_b ? inner : columns,
               accumulate ? 1.0F : 0.0F, c, columns);
}

void gemm_set_threads(int threads)
{
    omp_set_num_threads(threads);
}

const char *gemm_library(void)
{
    return "oneDNN";
}
