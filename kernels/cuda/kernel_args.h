/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_args: the argument of each GPU kernel, as host and device see it, and its launch shape.
 * Pointers are of memory that the device reaches. C and C++.
 */
#ifndef RING_CUDA_KERNEL_ARGS_H
#define RING_CUDA_KERNEL_ARGS_H

#include "optimizer_factors.h"

#include <stddef.h>
#include <stdint.h>

/** Threads of a block of every kernel here that streams over arrays. */
enum { CUDA_BLOCK = 256 };

/* ---- pack.cu ---- */

/** A buffer, and where it lies in the flat one. */
typedef struct cuda_piece {
    void *at;
    uint64_t offset, bytes; /* in flat */
} cuda_piece;

typedef struct cuda_pack_args {
    const cuda_piece *pieces; /* [count] */
    char *flat;
    uint32_t count;
    uint32_t unpack; /* 0: to flat, 1: from it */
} cuda_pack_args;

/* ---- fold.cu ---- */

/** ROW(name) of each ring_dtype, in their order: kernel fold_name. */
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

/* ---- cast.cu ---- */

/** Arrays aligned to their elements, of kernels f16_to_f32, bf16_to_f32, f32_to_f16, f32_to_bf16.
 */
typedef struct cuda_cast_args {
    const void *src;
    void *dst;
    uint64_t count;
} cuda_cast_args;

/* ---- optimizer.cu: kernels sgd_GRAD (without momentum), momentum_GRAD, adam_GRAD, lion_GRAD,
 * adagrad_GRAD, where GRAD is what gradients are of: f32, f16, bf16 ---- */

enum { CUDA_ROUNDED_NONE, CUDA_ROUNDED_F16, CUDA_ROUNDED_BF16 };

/** Aligned to their elements. */
typedef struct cuda_step_arrays {
    float *p;
    const void *grad;
    float *m, *v;    /* of adam; momentum and lion have m alone, adagrad v */
    void *p_rounded; /* the new parameters as float16 or bfloat16, too */
    uint64_t count;
    uint32_t rounded; /* CUDA_ROUNDED_ */
} cuda_step_arrays;

/** Factors are those of sgd_factors_of() and its like. */
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
 * The sum of squares in float64. The array is cut into parts, each added by a block: thread t adds
 * the squares of the elements 4t to 4t + 3 of the part, then of those 4 * CUDA_BLOCK further on,
 * and so forth; then the threads are added pairwise, t and t + 128, t and t + 64, …, t and t + 1.
 * The sums of the parts are added the same way: t, t + CUDA_BLOCK, …, then pairwise. */

enum { CUDA_NORM_PART = 32768 /* elements */ };

static inline uint64_t cuda_norm_parts(uint64_t count)
{
    return (count + CUDA_NORM_PART - 1) / CUDA_NORM_PART;
}

/** Of squares_f32, squares_f16, squares_bf16. */
typedef struct cuda_squares_args {
    const void *grad;
    uint64_t count;
    double *sums; /* [cuda_norm_parts(count)]; those of several arrays may follow each other */
} cuda_squares_args;

/** Of norm_finish. A total that ranks have added is finished as one part. */
typedef struct cuda_norm_args {
    const double *sums; /* [parts] */
    uint64_t parts;
    double scale, max_norm; /* of gradients, and of scale * gradients; INFINITY: any */
    double *total;          /* NULL, or becomes the sum                                  */
    double *factor;         /* NULL, or becomes scale * min(1, max_norm / (norm + 1e-6)) */
    uint32_t *overflow;     /* NULL, or becomes 1 if an element is infinite or NaN, else stays */
} cuda_norm_args;

/* ---- scale.cu: kernels scale_f16, scale_f32, scale_f64, scale_bf16, scale_e4m3, scale_e5m2 ----
 */

/** The arguments of kernel_scale(). */
typedef struct cuda_scale_args {
    void *dst;
    const void *src;
    uint64_t count;
    const double *factor; /* NULL: by */
    double by;
} cuda_scale_args;

#endif
