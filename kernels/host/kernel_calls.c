/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the public calls of kernels.h with the functions of the level in use. It makes the
 * decisions that do not depend on the level: which folds are copies, and which outputs are stored
 * around the caches. */
#include "kernel_table.h"

#include <string.h>

enum {
    CACHE_LINE = 64,
    /* Stores around the caches pay off if a fold reads and writes at least this many bytes. They
     * save fetching the lines that are written, but the next reader must fetch these from
     * memory. */
    STREAM_BYTES = 16 << 20,
};

size_t kernel_acc_size(ring_dtype dtype)
{
    switch (dtype) {
    case RING_INT8:
    case RING_UINT8:
        return 1;
    case RING_INT16:
    case RING_UINT16:
        return 2;
    case RING_INT64:
    case RING_UINT64:
    case RING_FLOAT64:
        return 8;
    default:
        return 4;
    }
}

/* @return true for floats of 16 and 8 bits, which are combined in float32. */
static bool is_narrow(ring_dtype dtype)
{
    return dtype == RING_FLOAT16 || (dtype >= RING_BFLOAT16 && dtype <= RING_FLOAT8_E5M2);
}

static bool all_have(const kernel_operand *operands, int count, bool accumulator)
{
    for (int k = 0; k < count; k++)
        if (operands[k].accumulator != accumulator)
            return false;
    return true;
}

/* Changes the type of a job to float32 if it needs no casts, and to bytes if it needs no
 * arithmetic. */
static void simplify(fold_job *job)
{
    size_t size = kernel_acc_size(job->dtype);
    if (is_narrow(job->dtype)) {
        const bool wide = job->ins[0].accumulator;
        if (!all_have(job->ins, job->in_count, wide) || !all_have(job->outs, job->out_count, wide))
            return;
        if (wide)
            job->dtype = RING_FLOAT32;
        else
            size = job->dtype > RING_BFLOAT16 ? sizeof(uint8_t) : sizeof(uint16_t);
    }
    const bool is_copy = job->in_count == 1 && job->divisor == 0 && !kernel_is_logical(job->op);
    const bool of_bits = job->op >= RING_BAND && job->op <= RING_BXOR;
    if (is_copy || of_bits) { /* gives the same result on bytes */
        job->dtype = RING_UINT8;
        job->end *= size;
    }
}

/* @return true if the outputs can and should be stored around the caches: the job is large, no
 * output is also an input (whose lines are cached already), and all outputs begin at the same
 * offset in a cache line. */
static bool may_stream(const fold_job *job, size_t size)
{
    const uintptr_t place = (uintptr_t)job->outs[0].data % CACHE_LINE;
    const size_t arrays = (size_t)job->in_count + (size_t)job->out_count;
    if (job->end * size * arrays < STREAM_BYTES || place % size != 0 || is_narrow(job->dtype))
        return false;
    for (int k = 0; k < job->out_count; k++) {
        if ((uintptr_t)job->outs[k].data % CACHE_LINE != place)
            return false;
        for (int i = 0; i < job->in_count; i++)
            if (job->outs[k].data == job->ins[i].data)
                return false;
    }
    return true;
}

/* Folds up to the first cache line boundary of the outputs with plain stores, and the rest with
 * stores around the caches. @param size  bytes of an element. */
static void fold_streaming(const kernel_table *table, fold_job job, size_t size)
{
    const size_t place = (uintptr_t)job.outs[0].data % CACHE_LINE;
    fold_job head = job;
    head.end = place == 0 ? 0 : (CACHE_LINE - place) / size;
    table->fold(&head);
    job.begin = head.end;
    job.stream = true;
    table->fold(&job);
}

#define DIVIDE(type) \
    for (type *x = data; x < (type *)data + count; x++) \
    *x = (type)(*x / divisor)

/* data (count) /= divisor. All levels share this loop, because CPUs have no vector instructions for
 * the division of integers. */
static void divide(void *data, size_t count, ring_dtype dtype, int divisor)
{
    switch (dtype) {
    case RING_INT8:
        DIVIDE(int8_t);
        break;
    case RING_UINT8:
        DIVIDE(uint8_t);
        break;
    case RING_INT16:
        DIVIDE(int16_t);
        break;
    case RING_UINT16:
        DIVIDE(uint16_t);
        break;
    case RING_INT32:
        DIVIDE(int32_t);
        break;
    case RING_UINT32:
        DIVIDE(uint32_t);
        break;
    case RING_INT64:
        DIVIDE(int64_t);
        break;
    default:
        DIVIDE(uint64_t);
    }
}

void kernel_fold(kernel_operand *outs, int out_count, const kernel_operand *ins, int in_count,
                 size_t count, ring_dtype dtype, ring_op op, int divisor)
{
    const kernel_table *table = kernel_table_in_use();
    fold_job job = {.outs = outs,
                    .ins = ins,
                    .out_count = out_count,
                    .in_count = in_count,
                    .end = count,
                    .dtype = dtype,
                    .op = op,
                    .divisor = divisor};
    simplify(&job);
    const size_t size = kernel_acc_size(job.dtype);
    if (may_stream(&job, size))
        fold_streaming(table, job, size);
    else
        table->fold(&job);
    for (int k = 0; divisor != 0 && kernel_is_integer(dtype) && k < out_count; k++)
        divide(outs[k].data, count, dtype, divisor);
}

void kernel_scale(void *dst, const void *src, size_t count, ring_dtype dtype, double by)
{
    kernel_table_in_use()->scale(dst, src, count, dtype, by);
}

void kernel_copy(void *dst, const void *src, size_t bytes)
{
    kernel_operand out = {.data = dst};
    const kernel_operand in = {.data = (void *)src};
    if (bytes >= STREAM_BYTES / 2)
        kernel_fold(&out, 1, &in, 1, bytes, RING_UINT8, RING_SUM, 0);
    else if (bytes > 0)
        memmove(dst, src, bytes);
}

void kernel_f16_to_f32(float *dst, const uint16_t *src, size_t count)
{
    kernel_table_in_use()->f16_to_f32(dst, src, count);
}

void kernel_f32_to_f16(uint16_t *dst, const float *src, size_t count)
{
    kernel_table_in_use()->f32_to_f16(dst, src, count);
}

void kernel_bf16_to_f32(float *dst, const uint16_t *src, size_t count)
{
    kernel_table_in_use()->bf16_to_f32(dst, src, count);
}

void kernel_f32_to_bf16(uint16_t *dst, const float *src, size_t count)
{
    kernel_table_in_use()->f32_to_bf16(dst, src, count);
}

void kernel_bytes_to_unit(float *dst, const uint8_t *src, size_t count)
{
    kernel_table_in_use()->bytes_to_unit(dst, src, count);
}

double kernel_sum_squares(const float *x, size_t count)
{
    return kernel_table_in_use()->sum_squares(x, count);
}

void kernel_sgd_step(float *p, const float *grad, float *buf, size_t count, const kernel_sgd *args)
{
    const kernel_table *table = kernel_table_in_use();
    const sgd_factors by = sgd_factors_of(args);
    if (args->momentum != 0)
        table->momentum_step(p, grad, buf, count, &by);
    else
        table->sgd_step(p, grad, count, &by);
}

void kernel_adam_step(float *p, const float *grad, float *m, float *v, size_t count,
                      const kernel_adam *args)
{
    const adam_factors by = adam_factors_of(args);
    kernel_table_in_use()->adam_step(p, grad, m, v, count, &by);
}

void kernel_lion_step(float *p, const float *grad, float *m, size_t count, const kernel_lion *args)
{
    const lion_factors by = lion_factors_of(args);
    kernel_table_in_use()->lion_step(p, grad, m, count, &by);
}

void kernel_adagrad_step(float *p, const float *grad, float *sum, size_t count,
                         const kernel_adagrad *args)
{
    const adagrad_factors by = adagrad_factors_of(args);
    kernel_table_in_use()->adagrad_step(p, grad, sum, count, &by);
}

void kernel_relu(float *out, const float *in, size_t count)
{
    kernel_table_in_use()->relu(out, in, count);
}

void kernel_relu_gradient(float *in_delta, const float *out_delta, const float *out, size_t count)
{
    kernel_table_in_use()->relu_gradient(in_delta, out_delta, out, count);
}

void kernel_add_to_rows(float *rows, const float *row, size_t count, size_t width)
{
    kernel_table_in_use()->add_to_rows(rows, row, count, width);
}

void kernel_add_rows(float *sum, const float *rows, size_t count, size_t width)
{
    kernel_table_in_use()->add_rows(sum, rows, count, width);
}
