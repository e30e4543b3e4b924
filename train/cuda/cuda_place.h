/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_place: computes networks on a GPU. It is a place (nn/place.h) whose requests are enqueued on
 * one stream: kernels of kernels/cuda, products of cuBLASLt, and copies.
 */
#ifndef TRAIN_CUDA_PLACE_H
#define TRAIN_CUDA_PLACE_H

#include "cuda_products.h"
#include "errors.h"
#include "layer_args.h"
#include "place.h"

/** ROW(image, name) for each kernel: the source in kernels/cuda that has it, and its name. */
#define CUDA_TRAIN_KERNELS(ROW) \
    ROW(layers, map_relu) \
    ROW(layers, map_relu_gradient) \
    ROW(layers, map_tanh) \
    ROW(layers, map_tanh_gradient) \
    ROW(layers, map_add) \
    ROW(layers, add_to_rows) \
    ROW(layers, sum_rows) \
    ROW(layers, fill_columns) \
    ROW(layers, spread_columns) \
    ROW(layers, max_pool) \
    ROW(layers, max_pool_gradient) \
    ROW(layers, mean_pool) \
    ROW(layers, mean_pool_gradient) \
    ROW(layers, dropout) \
    ROW(layers, cross_entropy) \
    ROW(layers, mean_squares) \
    ROW(layers, sum_losses) \
    ROW(optimizer, sgd_f32) \
    ROW(optimizer, momentum_f32) \
    ROW(optimizer, adam_f32) \
    ROW(optimizer, lion_f32) \
    ROW(optimizer, adagrad_f32) \
    ROW(norm, squares_f32) \
    ROW(norm, norm_finish)

typedef enum cuda_train_kernel {
#define ROW(image, name) CUDA_##name,
    CUDA_TRAIN_KERNELS(ROW)
#undef ROW
        CUDA_TRAIN_KERNEL_COUNT
} cuda_train_kernel;

enum { CUDA_TRAIN_IMAGES = 3 };

typedef struct cuda_place {
    nn_place place; /* first: requests receive its address */
    char name[16];
    const cuda_driver *api;
    CUdevice device;
    CUcontext context, outer; /* the GPU's; that of the thread which opened the place */
    CUstream stream;
    CUmodule modules[CUDA_TRAIN_IMAGES];
    CUfunction kernels[CUDA_TRAIN_KERNEL_COUNT];
    cuda_products products;
    size_t bytes;          /* of the GPU's memory, of all alloc() and cuBLASLt's workspace */
    train_failure failure; /* of the first request that failed */
} cuda_place;

/** Opens GPU @p device. Requests make its context that of the thread which makes them, and closing
 *  brings back the context of the thread which opened it.
 *  @param tf32  products may use TF32, see cuda_products_open().
 *  @return RING_OK, RING_ERR_UNSUPPORTED: there is no driver, GPU, cuBLASLt or kernels; or
 *  RING_ERR_SYSTEM. Close with cuda_place_close() whatever the result. */
ring_status cuda_place_open(cuda_place *place, int device, bool tf32);
/** Waits for all requests, and frees everything but memory of alloc(), which must be released
 *  before. */
void cuda_place_close(cuda_place *place);

/** @return the place of which @p place is the table. */
static inline cuda_place *cuda_place_of(const nn_place *place)
{
    return (cuda_place *)(uintptr_t)place;
}

/** Keeps a failure of a request. @param what  the request, such as an op's name. */
void cuda_place_keep(cuda_place *place, ring_status status, const char *what);

/** Makes the GPU's context that of the calling thread. @return false after a failure: requests do
 *  nothing then. */
bool cuda_place_enter(cuda_place *place);

/** Launches a kernel with blocks of @p threads threads. Does nothing after a failure.
 *  @param args  the kernel's argument. @param what  for messages, such as the op's name. */
void cuda_place_launch(cuda_place *place, cuda_train_kernel kernel, uint64_t blocks,
                       unsigned threads, void *args, const char *what);

/** The losses and steps of optimisers, as in nn_place. */
void cuda_loss(const nn_place *place, const loss_run *run);
void cuda_sgd(const nn_place *place, float *p, const float *grad, float *buf, size_t count,
              const struct kernel_sgd *args);
void cuda_adam(const nn_place *place, float *p, const float *grad, float *m, float *v, size_t count,
               const struct kernel_adam *args);
void cuda_lion(const nn_place *place, float *p, const float *grad, float *m, size_t count,
               const struct kernel_lion *args);
void cuda_adagrad(const nn_place *place, float *p, const float *grad, float *sum, size_t count,
                  const struct kernel_adagrad *args);
double cuda_sum_squares(const nn_place *place, const float *values, size_t count);

/** The passes of each op that GPUs can compute. @return NULL if they cannot compute @p op. */
const op_functions *cuda_ops_functions(const nn_op *op);
/** @return bytes of scratch memory, as nn_place's scratch_bytes(). */
size_t cuda_ops_scratch_bytes(const op_use *use, size_t batch);

#endif
