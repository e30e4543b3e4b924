/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the folds of one level by including fold_type.h once for each element type. Floats of 16
 * and 8 bits are widened to float32, combined, and rounded to their type again. */

enum {
    FOLD_WIDTH = 4, /* vectors in each round, so that independent additions hide their latency */
    FOLD_FEW = 8,   /* most arrays whose pointers fit into registers                           */
};

/* The names in fold_type.h get the suffix of the type, so that each inclusion defines its own. */
#define GLUE_(name, suffix) name##_##suffix
#define GLUE(name, suffix) GLUE_(name, suffix)
#define vector GLUE(vector, SUFFIX)
#define order GLUE(order, SUFFIX)
#define bits GLUE(bits, SUFFIX)
#define load GLUE(load, SUFFIX)
#define load_one GLUE(load_one, SUFFIX)
#define store GLUE(store, SUFFIX)
#define store_one GLUE(store_one, SUFFIX)
#define pick GLUE(pick, SUFFIX)
#define least GLUE(least, SUFFIX)
#define greatest GLUE(greatest, SUFFIX)
#define finish GLUE(finish, SUFFIX)
#define combine GLUE(combine, SUFFIX)
#define truth GLUE(truth, SUFFIX)
#define enter GLUE(enter, SUFFIX)
#define sweep GLUE(sweep, SUFFIX)
#define edge GLUE(edge, SUFFIX)
#define fold_op GLUE(fold_op, SUFFIX)
#define scale_type GLUE(scale, SUFFIX)
#define fold_type GLUE(fold, SUFFIX)

#define SUFFIX i8
#define TYPE uint8_t
#define ORDER int8_t
#define BITS int8_t
#include "fold_type.h"

#define SUFFIX u8
#define TYPE uint8_t
#define ORDER uint8_t
#define BITS int8_t
#define BYTES
#include "fold_type.h"

#define SUFFIX i16
#define TYPE uint16_t
#define ORDER int16_t
#define BITS int16_t
#include "fold_type.h"

#define SUFFIX u16
#define TYPE uint16_t
#define ORDER uint16_t
#define BITS int16_t
#include "fold_type.h"

#define SUFFIX i32
#define TYPE uint32_t
#define ORDER int32_t
#define BITS int32_t
#include "fold_type.h"

#define SUFFIX u32
#define TYPE uint32_t
#define ORDER uint32_t
#define BITS int32_t
#include "fold_type.h"

#define SUFFIX i64
#define TYPE uint64_t
#define ORDER int64_t
#define BITS int64_t
#include "fold_type.h"

#define SUFFIX u64
#define TYPE uint64_t
#define ORDER uint64_t
#define BITS int64_t
#include "fold_type.h"

#define SUFFIX f32
#define TYPE float
#define ORDER float
#define BITS int32_t
#define FLOAT
#include "fold_type.h"

#define SUFFIX f64
#define TYPE double
#define ORDER double
#define BITS int64_t
#define FLOAT
#include "fold_type.h"

#define SUFFIX f16
#define TYPE float
#define ORDER float
#define BITS int32_t
#define FLOAT
#define WIDEN f16_widen
#define NARROW f16_narrow
#define STORED uint16_t
#define STORED_VECTOR halves
#include "fold_type.h"

#define SUFFIX bf16
#define TYPE float
#define ORDER float
#define BITS int32_t
#define FLOAT
#define WIDEN bf16_widen
#define NARROW bf16_narrow
#define STORED uint16_t
#define STORED_VECTOR halves
#include "fold_type.h"

#define SUFFIX e4m3
#define TYPE float
#define ORDER float
#define BITS int32_t
#define FLOAT
#define WIDEN e4m3_widen
#define NARROW e4m3_narrow
#define STORED uint8_t
#define STORED_VECTOR quarters
#include "fold_type.h"

#define SUFFIX e5m2
#define TYPE float
#define ORDER float
#define BITS int32_t
#define FLOAT
#define WIDEN e5m2_widen
#define NARROW e5m2_narrow
#define STORED uint8_t
#define STORED_VECTOR quarters
#include "fold_type.h"

#undef vector
#undef order
#undef bits
#undef load
#undef load_one
#undef store
#undef store_one
#undef pick
#undef least
#undef greatest
#undef finish
#undef combine
#undef truth
#undef enter
#undef sweep
#undef edge
#undef fold_op
#undef scale_type
#undef fold_type

/* ---- float32 sums of up to FOLD_FEW arrays, a third faster with all pointers in registers ---- */

/* outs[k] (count) = ins[0] + ins[1] + … (count), FOLD_WIDTH vectors in each round. Callers pass
 * constants as @p in_count and @p out_count, so that the compiler unrolls the inner loops.
 * @return the first element of the rest, which is less than a round. */
static ALWAYS_INLINE size_t sum_few(const fold_job *job, const int in_count, const int out_count)
{
    enum { STEP = FOLD_WIDTH * LEVEL_BYTES };
    const char *in[FOLD_FEW];
    char *out[FOLD_FEW];
    for (int k = 0; k < in_count; k++)
        in[k] = job->ins[k].data;
    for (int k = 0; k < out_count; k++)
        out[k] = job->outs[k].data;
    const size_t end = job->end * sizeof(float);
    const int divisor = job->divisor;
    size_t at = job->begin * sizeof(float);
    for (; end - at >= STEP; at += STEP) {
        vector_f32 x[FOLD_WIDTH];
        for (int j = 0; j < FOLD_WIDTH; j++)
            x[j] = ((const vector_f32 *)(const void *)(in[0] + at))[j];
        for (int k = 1; k < in_count; k++)
            for (int j = 0; j < FOLD_WIDTH; j++)
                x[j] += ((const vector_f32 *)(const void *)(in[k] + at))[j];
        for (int j = 0; j < FOLD_WIDTH; j++)
            x[j] = finish_f32(x[j], divisor);
        for (int k = 0; k < out_count; k++)
            for (int j = 0; j < FOLD_WIDTH; j++)
                ((vector_f32 *)(void *)(out[k] + at))[j] = x[j];
    }
    return at / sizeof(float);
}

/* Adds as many elements with sum_few() as possible. @return the first of the other elements, which
 * fold_f32() must add. */
static size_t sum_prefix(const fold_job *job)
{
    if (job->in_count == 2 && job->out_count == 1)
        return sum_few(job, 2, 1);
    if (job->in_count != job->out_count)
        return job->begin;
    switch (job->in_count) {
    case 2:
        return sum_few(job, 2, 2);
    case 3:
        return sum_few(job, 3, 3);
    case 4:
        return sum_few(job, 4, 4);
    case 5:
        return sum_few(job, 5, 5);
    case 6:
        return sum_few(job, 6, 6);
    case 7:
        return sum_few(job, 7, 7);
    case 8:
        return sum_few(job, 8, 8);
    default:
        return job->begin;
    }
}

static void fold_floats(fold_job *job)
{
    const bool adds = job->op == RING_SUM || job->op == RING_AVG || job->op == RING_PREMUL_SUM;
    if (adds && !job->stream)
        job->begin = sum_prefix(job);
    if (job->begin < job->end)
        fold_f32(job);
}

static void fold(fold_job *job)
{
    static void (*const folds[RING_DTYPE_COUNT])(fold_job *) = {
        [RING_INT8] = fold_i8,       [RING_UINT8] = fold_u8,         [RING_INT32] = fold_i32,
        [RING_UINT32] = fold_u32,    [RING_INT64] = fold_i64,        [RING_UINT64] = fold_u64,
        [RING_FLOAT16] = fold_f16,   [RING_FLOAT32] = fold_floats,   [RING_FLOAT64] = fold_f64,
        [RING_BFLOAT16] = fold_bf16, [RING_FLOAT8_E4M3] = fold_e4m3, [RING_FLOAT8_E5M2] = fold_e5m2,
        [RING_INT16] = fold_i16,     [RING_UINT16] = fold_u16,
    };
    folds[job->dtype](job);
}

static void scale(void *dst, const void *src, size_t count, ring_dtype dtype, double by)
{
    const kernel_operand out = {.data = dst}, in = {.data = (void *)(uintptr_t)src};
    switch (dtype) {
    case RING_FLOAT16:
        scale_f16(out, in, count, by);
        break;
    case RING_BFLOAT16:
        scale_bf16(out, in, count, by);
        break;
    case RING_FLOAT8_E4M3:
        scale_e4m3(out, in, count, by);
        break;
    case RING_FLOAT8_E5M2:
        scale_e5m2(out, in, count, by);
        break;
    case RING_FLOAT64:
        scale_f64(out, in, count, by);
        break;
    default:
        scale_f32(out, in, count, by);
    }
}
