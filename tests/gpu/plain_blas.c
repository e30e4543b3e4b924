/* SPDX-License-Identifier: Apache-2.0
 * A small libopenblas.so.0 with the functions that ringtrain calls, for the pack: OpenBLAS itself
 * has 37 MB of kernels. Sums are float64, so that a GPU is compared with more exact losses. */
#include <cblas.h>
#include <stdlib.h>

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void openblas_set_num_threads(int threads)
{
    (void)threads;
}

/* c = alpha * op(a) * op(b) + beta * c, for matrices that are row-major. */
PUBLIC void cblas_sgemm(const enum CBLAS_ORDER order, const enum CBLAS_TRANSPOSE transpose_a,
                        const enum CBLAS_TRANSPOSE transpose_b, const blasint m, const blasint n,
                        const blasint k, const float alpha, const float *a, const blasint row_a,
                        const float *b, const blasint row_b, const float beta, float *c,
                        const blasint row_c)
{
    const size_t columns = (size_t)n, inner = (size_t)k;
    double *right = malloc((inner + 1) * columns * sizeof *right); /* op(b), and a row of sums */
    if (right == NULL || order != CblasRowMajor)
        abort();
    double *sums = right + inner * columns;
    for (size_t p = 0; p < inner; p++)
        for (size_t j = 0; j < columns; j++)
            right[p * columns + j] = (double)(transpose_b == CblasTrans ? b[j * (size_t)row_b + p]
                                                                        : b[p * (size_t)row_b + j]);
    for (size_t i = 0; i < (size_t)m; i++) {
        float *out = c + i * (size_t)row_c;
        for (size_t j = 0; j < columns; j++) /* outputs that beta 0 replaces may be NaN */
            sums[j] = beta == 0.0F ? 0.0 : (double)beta * (double)out[j];
        for (size_t p = 0; p < inner; p++) {
            const double left = (double)alpha * (double)(transpose_a == CblasTrans
                                                             ? a[p * (size_t)row_a + i]
                                                             : a[i * (size_t)row_a + p]);
            for (size_t j = 0; j < columns; j++)
                sums[j] += left * right[p * columns + j];
        }
        for (size_t j = 0; j < columns; j++)
            out[j] = (float)sums[j];
    }
    free(right);
}
