/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_place: computes networks on a GPU. It is a place (nn/place.h) whose requests are enqueued on
 * one stream: kernels of kernels/cuda/layers.cu, products of cuBLASLt, and copies.
 */
#ifndef TRAIN_CUDA_PLACE_H
#define TRAIN_CUDA_PLACE_H

#include "cuda_products.h"
#include "errors.h"
#include "layer_args.h"
#include "place.h"

/** ROW(name) for each kernel of layers.cu. */
#define CUDA_LAYER_KERNELS(ROW) \
    ROW(map_relu) \
    ROW(map_relu_gradient) \
    ROW(map_tanh) \
    ROW(map_tanh_gradient) \
    ROW(map_add) \
    ROW(add_to_rows) \
    ROW(sum_rows) \
    ROW(fill_columns) \
    ROW(spread_columns) \
    ROW(max_pool) \
    ROW(max_pool_gradient) \
    ROW(mean_pool) \
    ROW(mean_pool_gradient) \
    ROW(dropout) \
    ROW(cross_entropy) \
    ROW(mean_squares) \
    ROW(is_best) \
    ROW(sum_losses) \
    ROW(take)

typedef enum cuda_layer_kernel {
#define ROW(name) CUDA_##name,
    CUDA_LAYER_KERNELS(ROW)
#undef ROW
        CUDA_LAYER_KERNEL_COUNT
} cuda_layer_kernel;

typedef struct cuda_place {
    nn_place place; /* first: requests receive its address */
    char name[16];
    const cuda_driver *api;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUmodule module;
    CUfunction kernels[CUDA_LAYER_KERNEL_COUNT];
    cuda_products products;
    train_failure failure; /* of the first request that failed */
} cuda_place;

/** Opens GPU @p device, and makes its context the calling thread's.
 *  @param tf32  products may use TF32, see cuda_products_open().
 *  @return RING_OK, RING_ERR_UNSUPPORTED: there is no driver, GPU, cuBLASLt or kernels; or
 *  RING_ERR_SYSTEM. Close with cuda_place_close() whatever the result. */
ring_status cuda_place_open(cuda_place *place, int device, bool tf32);
/** Waits for all requests, and frees everything but memory of alloc(), which must be released
 *  before. */
void cuda_place_close(cuda_place *place);

/** Makes the GPU's context that of the calling thread, which must be done before its requests. */
void cuda_place_enter(const cuda_place *place);

/** @return the place that computes @p run. */
static inline cuda_place *cuda_place_of(const nn_place *place)
{
    return (cuda_place *)(uintptr_t)place;
}

/** Keeps a failure of a request. @param what  the request, such as an op's name. */
void cuda_place_keep(cuda_place *place, ring_status status, const char *what);

/** Launches a kernel with blocks of @p threads threads. Does nothing after a failure.
 *  @param args  the kernel's argument. @param what  for messages, such as the op's name. */
void cuda_place_launch(cuda_place *place, cuda_layer_kernel kernel, uint64_t blocks,
                       unsigned threads, void *args, const char *what);

/** The passes of each op that GPUs can compute. @return NULL if they cannot compute @p op. */
const op_functions *cuda_ops_functions(const nn_op *op);
/** @return bytes of scratch memory, as nn_place's scratch_bytes(). */
size_t cuda_ops_scratch_bytes(const op_use *use, size_t batch);

#endif
