/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_products: multiplies float32 matrices on a GPU with cuBLASLt. The descriptors and the
 * algorithm of each shape are kept, so that a repeated product is one call. The algorithm is the
 * first that cuBLASLt proposes, so that every run on one kind of GPU computes the same bits.
 */
#ifndef TRAIN_CUDA_PRODUCTS_H
#define TRAIN_CUDA_PRODUCTS_H

#include "cublaslt.h"

enum { CUDA_WORKSPACE_BYTES = 32 << 20 };

typedef enum cuda_epilogue { CUDA_PLAIN, CUDA_BIAS, CUDA_RELU, CUDA_RELU_BIAS } cuda_epilogue;

struct cuda_product_plan;

typedef struct cuda_products {
    const cublaslt *lt;
    cublasLtHandle_t handle;
    bool tf32;
    struct cuda_product_plan *plans;
} cuda_products;

/** Loads cuBLASLt for the calling thread's context.
 *  @param tf32  operands may be rounded to TF32, which is faster and keeps 10 bits of the mantissa.
 *  @return RING_OK, RING_ERR_UNSUPPORTED or RING_ERR_SYSTEM, with fail() called. Close with
 *  cuda_products_close() whatever the result. */
ring_status cuda_products_open(cuda_products *products, bool tf32);
/** Frees everything. All products must have been executed. */
void cuda_products_close(cuda_products *products);

/** Properties that decide the descriptors of a product. All members are plain numbers, so that two
 * shapes are compared by their bytes; make it with = {0}. */
typedef struct cuda_product_shape {
    uint64_t transpose_a, transpose_b; /* 0 or 1 */
    uint64_t m, n, k;
    uint64_t batch;                  /* products, at least 1 */
    uint64_t step_a, step_b, step_c; /* elements between the matrices of a batch */
    uint64_t accumulate;             /* 1: add to c */
    uint64_t epilogue;               /* with BIAS, a bias [n] is added to each row of c; with RELU,
                                        numbers below 0 then become 0 */
    uint64_t alignments[4];          /* set by cuda_product(): of b, a, c and bias in bytes */
} cuda_product_shape;

/** Enqueues op(a) (m, k) · op(b) (k, n), for each of a batch, which is stored in c (m, n) as by
 * gemm() (nn/gemm.h). Rows follow each other without gaps.
 *  @param stream, workspace [CUDA_WORKSPACE_BYTES]  in which the product is computed
 *  @param bias  [n] NULL: none.
 *  @return RING_OK, RING_ERR_MEMORY or RING_ERR_SYSTEM, with fail() called. */
ring_status cuda_product(cuda_products *products, CUstream stream, CUdeviceptr workspace,
                         const cuda_product_shape *shape, const float *a, const float *b, float *c,
                         const float *bias);

#endif
