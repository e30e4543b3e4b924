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
    ROW(norm, norm_finish) \
    ROW(updates, take) \
    ROW(updates, judge)

typedef enum cuda_train_kernel {
#define ROW(image, name) CUDA_##name,
    CUDA_TRAIN_KERNELS(ROW)
#undef ROW
        CUDA_TRAIN_KERNEL_COUNT
} cuda_train_kernel;

enum { CUDA_TRAIN_IMAGES = 4 };

/** Streams. All requests are in the trunk, except that a captured graph computes the gradients of
 *  parameters beside it: those of weights in one branch, those of biases and the loss's sum in the
 *  other. */
typedef enum cuda_lane_name { CUDA_TRUNK, CUDA_PRODUCTS, CUDA_SUMS, CUDA_LANES } cuda_lane_name;

enum {
    CUDA_LOSSES_BYTES = 1 << 20, /* of the losses that are added up at once */
    CUDA_LANES_BYTES = 2 * CUDA_WORKSPACE_BYTES + CUDA_LOSSES_BYTES /* of all workspaces */
};

typedef struct cuda_lane {
    CUstream stream;
    CUdeviceptr workspace; /* of products; [CUDA_LOSSES_BYTES] for sums */
    CUevent event;
    bool is_ahead; /* the trunk has not waited for it yet */
} cuda_lane;

enum { CUDA_UPDATES_AT_ONCE = 8 };

/** Updates that run ahead of the host (cuda_deferred.c). */
typedef struct cuda_queue {
    uint64_t stated, launched; /* updates; all between them are launches of the graphs */
    CUgraphExec one, group;    /* of one update, and of CUDA_UPDATES_AT_ONCE updates */
    bool active;               /* an update has begun, so the context has been entered */
    bool overlaps;             /* a graph is being captured in which branches may be used */
} cuda_queue;

struct cuda_updates;

typedef struct cuda_place {
    nn_place place; /* first: requests receive its address */
    char name[16];
    const cuda_driver *api;
    CUdevice device;
    CUcontext context, outer; /* the GPU's; that of the thread which opened the place */
    cuda_lane lanes[CUDA_LANES];
    cuda_lane *lane; /* of the next request */
    cuda_queue queue;
    struct cuda_updates *updates; /* NULL before place_updates.open() */
    CUmodule modules[CUDA_TRAIN_IMAGES];
    CUfunction kernels[CUDA_TRAIN_KERNEL_COUNT];
    cuda_products products;
    size_t bytes;          /* of the GPU's memory, of all alloc() and the workspaces */
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

/** Launches all updates that have been stated, unless one has begun. The context must have been
 *  entered. */
void cuda_place_flush(cuda_place *place);

/** Launches a kernel with blocks of @p threads threads. Does nothing after a failure.
 *  @param args  the kernel's argument. @param what  for messages, such as the op's name. */
void cuda_place_launch(cuda_place *place, cuda_train_kernel kernel, uint64_t blocks,
                       unsigned threads, void *args, const char *what);

/** Makes later requests those of @p lane, after all that the trunk has been given so far. Does
 *  nothing unless a graph with branches is being captured. */
void cuda_place_fork(cuda_place *place, cuda_lane_name lane);
/** Makes later requests those of the trunk again. */
void cuda_place_return(cuda_place *place);
/** Makes the trunk wait for the branches. */
void cuda_place_join(cuda_place *place);

/** The updates of a GPU (nn/place.h). */
extern const place_updates cuda_place_updates;
void cuda_updates_close(cuda_place *place);
/** @return the numbers of the update that has begun, on the GPU; NULL: none has. */
cuda_update *cuda_updates_numbers(const cuda_place *place);
/** States the factors of the next step of the update that has begun. A kernel that is executed at
 *  once has them as arguments, because the record has been read already.
 *  @param[out] arrays  receives where the kernel finds them
 *  @return whether the step's kernel must be launched. */
bool cuda_updates_step(cuda_place *place, cuda_step_arrays *arrays, const void *factors,
                       size_t bytes);

/** The losses and steps of optimisers, as in nn_place. */
void cuda_loss(const nn_place *nn, const loss_run *run);
void cuda_sgd(const nn_place *nn, float *p, const float *grad, float *buf, size_t count,
              const struct kernel_sgd *args);
void cuda_adam(const nn_place *nn, float *p, const float *grad, float *m, float *v, size_t count,
               const struct kernel_adam *args);
void cuda_lion(const nn_place *nn, float *p, const float *grad, float *m, size_t count,
               const struct kernel_lion *args);
void cuda_adagrad(const nn_place *nn, float *p, const float *grad, float *sum, size_t count,
                  const struct kernel_adagrad *args);
double cuda_sum_squares(const nn_place *nn, const float *values, size_t count);
/** The passes of each op that GPUs can compute. @return NULL if they cannot compute @p op. */
const op_functions *cuda_ops_functions(const nn_op *op);
/** @return bytes of scratch memory, as the functions of nn_place. */
size_t cuda_ops_scratch_bytes(const op_use *use, size_t batch);
size_t cuda_ops_scratch_beside(const op_use *use, size_t batch);

#endif
