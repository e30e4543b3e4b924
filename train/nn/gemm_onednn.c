/* SPDX-License-Identifier: Apache-2.0
 * Calls oneDNN to multiply matrices. oneDNN runs on OpenMP's threads, so their number and mode are
 * set through OpenMP. */
#include "gemm.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include "subnormals.h"

static char transposed(bool transpose)
{
    return transpose ? 'T' : 'N';
}

/* dnnl_sgemm fails only on sizes and strides that cannot occur here. */
void gemm_strided(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float *a,
                  size_t row_a, const float *b, size_t row_b, bool accumulate, float *c,
                  size_t row_c)
{
    dnnl_sgemm(transposed(transpose_a), transposed(transpose_b), (dnnl_dim_t)m, (dnnl_dim_t)n,
               (dnnl_dim_t)k, 1.0F, a, (dnnl_dim_t)row_a, b, (dnnl_dim_t)row_b,
               accumulate ? 1.0F : 0.0F, c, (dnnl_dim_t)row_c);
}

/* OpenMP's threads live from one product to the next and keep their subnormal mode, so it is set
 * only once. The calling thread's mode is not changed. */
void gemm_set_threads(int threads)
{
    omp_set_num_threads(threads);
#pragma omp parallel
    if (omp_get_thread_num() > 0)
        subnormals_flush();
}

const char *gemm_library(void)
{
    return "oneDNN";
}
