/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_args: defines the argument of each GPU kernel, for the host and the device, and the shape
 * of its launch. All pointers must point to memory that the device can access. C and C++ include
 * this.
 */
#ifndef RING_CUDA_KERNEL_ARGS_H
#define RING_CUDA_KERNEL_ARGS_H

#include "optimizer_factors.h"

#include <stddef.h>
#include <stdint.h>

/** Threads in a block of each kernel that streams over arrays. */
enum { CUDA_BLOCK = 256 };

/** @return the blocks of @p threads threads that a kernel needs for arrays of @p count elements, if
 *  a thread takes @p group elements, or a single one of the fewer than 2 * group that lie before
 * and after all groups. A grid has fewer than 2^31 blocks, which is enough for arrays of 8 TiB. */
static inline uint64_t cuda_tiles(uint64_t count, unsigned group, unsigned threads)
{
    return (count / group + (uint64_t)2 * group + threads - 1) / threads;
}

/* ---- pack.cu ---- */

/** A buffer and its place in the flat buffer. */
typedef struct cuda_piece {
    void *at;
    uint64_t offset, bytes; /* in the flat buffer */
} cuda_piece;

typedef struct cuda_pack_args {
    const cuda_piece *pieces; /* [count] */
    char *flat;
    uint32_t count;
    uint32_t unpack; /* 0: pieces to flat; 1: flat to pieces */
} cuda_pack_args;

/* ---- fold.cu ---- */

/** ROW(name) for each ring_dtype, in the order of the enumeration. The kernels are fold_NAME. */
#define CUDA_FOLD_TYPES(ROW) \
    ROW(i8) \
    ROW(u8) \
    ROW(i32) \
    ROW(u32) \
    ROW(i64) \
    ROW(u64) \
    ROW(f16) \
    ROW(f32) \
    ROW(f64) \
    ROW(bf16) \
    ROW(e4m3) \
    ROW(e5m2) \
    ROW(i16) \
    ROW(u16)

/** The arguments of kernel_fold(). */
typedef struct cuda_fold_args {
    const void *ins[64]; /* KERNEL_MAX_INPUTS */
    void *outs[64];
    uint64_t ins_wide, outs_wide; /* bit k: operand k is of the accumulator type */
    uint64_t count;
    uint32_t in_count, out_count;
    int32_t op; /* ring_op */
    int32_t divisor;
} cuda_fold_args;

/** The arguments of fold_few_NAME, which folds 1 or 2 arrays to 1 or 2. One array is not divided,
 * and its operation is not a logical one; of two, only sums of floats are divided. Vectors of 16
 * bytes begin after @p lead elements in all arrays (FOLD_VECTORS in fold_way.h). */
typedef struct cuda_fold_few_args {
    const void *ins[2];
    void *outs[2];
    uint64_t count, lead;
    uint32_t ins_wide, outs_wide; /* as in cuda_fold_args */
    uint32_t in_count, out_count;
    int32_t op; /* ring_op */
    int32_t divisor;
} cuda_fold_few_args;

/* ---- cast.cu ---- */

/** Elements that a thread of a cast or of an optimiser's step takes. */
enum { CAST_GROUP = 4 };

/** The arguments of f16_to_f32, bf16_to_f32, f32_to_f16 and f32_to_bf16. The arrays must be aligned
 *  to their elements. */
typedef struct cuda_cast_args {
    const void *src; /* [count] */
    void *dst;       /* [count] */
    uint64_t count;
} cuda_cast_args;

/* ---- Updates of a network ---- */

enum { CUDA_FACTORS_BYTES = 64 /* room for the factors of a step */ };

/** The numbers of the update that runs, in the device's memory. Kernels read them instead of
 *  arguments of their own, so that a graph of an update can be launched again. Updates write them
 *  by the kernels of updates.cu. It is followed by the factors of the update's steps, each in
 *  CUDA_FACTORS_BYTES. */
typedef struct cuda_update {
    uint64_t count; /* updates that have been judged */
    double loss;    /* sum of the losses so far */
    double clip;    /* factor of the gradients */
    uint32_t skips; /* 1: a loss or gradient was not finite, in this update or an earlier one */
    uint32_t step;  /* number of the update, for dropout */
    uint64_t reserved[4];
} cuda_update;

/* ---- optimizer.cu: the kernels are sgd_GRAD (without momentum), momentum_GRAD, adam_GRAD,
 * lion_GRAD and adagrad_GRAD, where GRAD is the type of gradients: f32, f16, bf16 ---- */

enum { CUDA_ROUNDED_NONE, CUDA_ROUNDED_F16, CUDA_ROUNDED_BF16 };

#define CUDA_OWN_FACTORS UINT32_MAX

/** Arrays of [count] elements, each aligned to its elements. */
typedef struct cuda_step_arrays {
    float *p;
    const void *grad;
    float *m, *v;    /* adam uses both, momentum and lion only m, adagrad only v      */
    void *p_rounded; /* also receives the new parameters, as float16 or bfloat16      */
    uint64_t count;
    uint32_t rounded; /* the type of p_rounded: a CUDA_ROUNDED_ value */
    uint32_t slot;    /* with an update: the number of its factors that are used instead of `by`, or
                         CUDA_OWN_FACTORS */
    const cuda_update *update; /* NULL: none; else its clip is a factor of the gradients, too, and
                                  an update that skips changes nothing */
} cuda_step_arrays;

/** The factors come from sgd_factors_of() and the corresponding functions of optimizer_factors.h.
 */
typedef struct cuda_sgd_args {
    cuda_step_arrays arrays;
    sgd_factors by;
} cuda_sgd_args;

typedef struct cuda_adam_args {
    cuda_step_arrays arrays;
    adam_factors by;
} cuda_adam_args;

typedef struct cuda_lion_args {
    cuda_step_arrays arrays;
    lion_factors by;
} cuda_lion_args;

typedef struct cuda_adagrad_args {
    cuda_step_arrays arrays;
    adagrad_factors by;
} cuda_adagrad_args;

/* ---- norm.cu ----
 *
 * The sum of squares is computed in float64. The array is cut into parts, and a block adds up each
 * part: thread t adds the squares of the elements 4t to 4t + 3 of the part, then of the elements
 * 4 * CUDA_BLOCK further on, and so forth. Then the sums of the threads are added pairwise: t and
 * t + 128, t and t + 64, …, t and t + 1. The sums of the parts are added in the same way: thread t
 * adds those of the parts t, t + CUDA_BLOCK, …, and then the threads are added pairwise. */

enum { CUDA_NORM_PART = 32768 /* elements */ };

static inline uint64_t cuda_norm_parts(uint64_t count)
{
    return (count + CUDA_NORM_PART - 1) / CUDA_NORM_PART;
}

/** The arguments of squares_f32, squares_f16 and squares_bf16. */
typedef struct cuda_squares_args {
    const void *grad; /* [count] */
    uint64_t count;
    double *sums; /* [cuda_norm_parts(count)]; the sums of several arrays may be consecutive */
} cuda_squares_args;

/** The arguments of norm_finish. A total that ranks have reduced is passed as one part. */
typedef struct cuda_norm_args {
    const double *sums; /* [parts] */
    uint64_t parts;
    double scale,
        max_norm;       /* the factor of gradients; the limit of their scaled norm, or INFINITY */
    double *total;      /* receives the sum, unless NULL                                  */
    double *factor;     /* receives scale * min(1, max_norm / (norm + 1e-6)), unless NULL */
    uint32_t *overflow; /* set to 1 if an element is infinite or NaN, unless NULL         */
} cuda_norm_args;

/* ---- scale.cu: the kernels are scale_f16, scale_f32, scale_f64, scale_bf16, scale_e4m3 and
 * scale_e5m2 ---- */

/** The arguments of kernel_scale(). */
typedef struct cuda_scale_args {
    void *dst;
    const void *src;
    uint64_t count;
    const double *factor; /* in the device's memory; NULL: use `by` */
    double by;
} cuda_scale_args;

#endif
