/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the table of the functions of one SIMD level. The functions of all levels are compiled
 * from the same source and compute the same bits. kernel_calls.c calls them to implement the public
 * functions of kernels.h, which describes their arguments. */
#ifndef KERNEL_TABLE_H
#define KERNEL_TABLE_H

#include "kernels.h"
#include "optimizer_factors.h"

/* The arguments of kernel_fold() for the elements [begin, end). */
typedef struct fold_job {
    const kernel_operand *outs, *ins;
    int out_count, in_count;
    size_t begin, end;
    ring_dtype dtype;
    ring_op op;
    int divisor;
    bool stream; /* store around the caches; element `begin` of each output starts a cache line */
} fold_job;

typedef struct kernel_table {
    void (*fold)(fold_job *job); /* may change *job */
    void (*scale)(void *dst, const void *src, size_t count, ring_dtype dtype, double by);
    void (*f16_to_f32)(float *dst, const uint16_t *src, size_t count);
    void (*f32_to_f16)(uint16_t *dst, const float *src, size_t count);
    void (*bf16_to_f32)(float *dst, const uint16_t *src, size_t count);
    void (*f32_to_bf16)(uint16_t *dst, const float *src, size_t count);
    void (*bytes_to_unit)(float *dst, const uint8_t *src, size_t count);
    double (*sum_squares)(const float *x, size_t count);
    void (*sgd_step)(float *p, const float *grad, size_t count, const sgd_factors *by);
    void (*momentum_step)(float *p, const float *grad, float *buf, size_t count,
                          const sgd_factors *by);
    void (*adam_step)(float *p, const float *grad, float *m, float *v, size_t count,
                      const adam_factors *by);
    void (*lion_step)(float *p, const float *grad, float *m, size_t count, const lion_factors *by);
    void (*adagrad_step)(float *p, const float *grad, float *sum, size_t count,
                         const adagrad_factors *by);
    void (*relu)(float *out, const float *in, size_t count);
    void (*relu_gradient)(float *in_delta, const float *out_delta, const float *out, size_t count);
    void (*add_to_rows)(float *rows, const float *row, size_t count, size_t width);
    void (*add_rows)(float *sum, const float *rows, size_t count, size_t width);
} kernel_table;

extern const kernel_table kernel_table_c, kernel_table_avx2, kernel_table_avx512;

/** @return the table in use, which the first call chooses. */
const kernel_table *kernel_table_in_use(void);

#endif
