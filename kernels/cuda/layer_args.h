/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_args: defines the arguments of the GPU kernels that compute the layers and the loss of a
 * network in float32 (layers.cu), and the shapes of their launches. All pointers must point to
 * memory that the device can access, and be aligned to their elements. C and C++ include this.
 */
#ifndef RING_CUDA_LAYER_ARGS_H
#define RING_CUDA_LAYER_ARGS_H

#include "kernel_args.h"

/* ---- map_NAME: elements. Launch: cuda_tiles(count, CAST_GROUP, CUDA_BLOCK) blocks of CUDA_BLOCK
 * threads ---- */

/** ROW(name): relu: out = max(0, a), NaN stays NaN; relu_gradient: out = b > 0 ? a : 0; tanh: out =
 *  tanh(a); tanh_gradient: out = a * (1 - b * b); add: out += a. out may be a or b. */
#define CUDA_MAPS(ROW) \
    ROW(relu) \
    ROW(relu_gradient) \
    ROW(tanh) \
    ROW(tanh_gradient) \
    ROW(add)

typedef struct cuda_map_args {
    float *out;     /* [count] */
    const float *a; /* [count] */
    const float *b; /* [count], or NULL if the map does not read it */
    uint64_t count;
} cuda_map_args;

/* ---- add_to_rows, sum_rows ---- */

/** A matrix whose columns form @c channels groups of @c places columns each, and a vector with an
 *  element for each group.
 *
 *  add_to_rows: rows[i, c, p] += row[c]. Launch: as map_NAME, for the elements of rows.
 *
 *  sum_rows: row[c], or its old value plus it if @c adds, is the sum of rows[i, c, p] over i and p.
 *  With one place, thread t of a block adds up every CUDA_SUM_PARTS-th row of a column, beginning
 *  with row t / CUDA_SUM_COLUMNS, and then the parts are added in their order; otherwise thread t
 *  adds up the elements t, t + CUDA_BLOCK, … of (i, p), and then the threads are added pairwise.
 *  Launch: cuda_sum_blocks() blocks of CUDA_BLOCK threads. */
typedef struct cuda_rows_args {
    float *rows; /* [count, channels, places] */
    float *row;  /* [channels] */
    uint64_t count;
    uint32_t channels, places;
    uint32_t adds;
} cuda_rows_args;

enum { CUDA_SUM_COLUMNS = 32, CUDA_SUM_PARTS = CUDA_BLOCK / CUDA_SUM_COLUMNS };

static inline unsigned cuda_sum_blocks(uint32_t channels, uint32_t places)
{
    return places > 1 ? channels : (channels + CUDA_SUM_COLUMNS - 1) / CUDA_SUM_COLUMNS;
}

/* ---- Windows over the channels of images. Launch: cuda_tiles(elements that are written, 1,
 * CUDA_BLOCK) blocks of CUDA_BLOCK threads ---- */

typedef struct cuda_window {
    uint32_t channels, rows, columns; /* of the images */
    uint32_t out_rows, out_columns;
    uint32_t kernel, stride, padding; /* in both directions */
} cuda_window;

/** fill_columns: columns[i, w, p] is the element of image i at place w of window p, 0 in the
 *  padding. spread_columns: the transpose, images[i, e] is the sum of the elements of columns that
 *  fill_columns copies from it, in the order of w. Here w counts [channels, kernel, kernel] and p
 *  counts [out_rows, out_columns]. */
typedef struct cuda_columns_args {
    float *images;  /* [batch, channels, rows, columns] */
    float *columns; /* [batch, channels * kernel * kernel, out_rows * out_columns] */
    uint64_t batch;
    cuda_window window;
} cuda_columns_args;

/** max_pool and mean_pool write out. max_pool_gradient and mean_pool_gradient write in as the
 *  gradient, and read out as the gradient of the output. Maxima are chosen as in op_max_pool2d.c,
 *  and sums are added in the order of windows. */
typedef struct cuda_pool_args {
    float *in;        /* [batch, channels, rows, columns] */
    float *out;       /* [batch, channels, out_rows, out_columns] */
    uint32_t *places; /* [as out] index of each maximum in its channel; NULL for mean_pool */
    uint64_t batch;
    cuda_window window;
} cuda_pool_args;

/* ---- dropout ---- */

/** out[i] = keep[i] ? in[i] * scale : 0. If @c draws, keep is drawn first, by Philox: word e % 4 of
 *  the counter (e / 4, node, sample, step) is compared with @c dropped, for element e of a sample.
 *  Launch: cuda_tiles(batch * (width + 3) / 4, 1, CUDA_BLOCK) blocks of CUDA_BLOCK threads. */
typedef struct cuda_dropout_args {
    float *out;              /* [batch, width] */
    const float *in;         /* [batch, width] */
    uint8_t *keep;           /* [batch, width] */
    const uint32_t *samples; /* [batch] numbers of the samples; NULL: 0, 1, … */
    uint64_t batch, width;
    double dropped; /* probability * 2^32 */
    float scale;    /* 1 / (1 - probability) */
    uint32_t key[2], node, step;
    uint32_t draws;
} cuda_dropout_args;

/* ---- Loss. Launch: a block of CUDA_LOSS_BLOCK threads for each row ---- */

enum { CUDA_LOSS_BLOCK = 64 };

/** cross_entropy and mean_squares: the loss of each row, and its gradient times @c scale, as in
 *  train/nn/loss.h. */
typedef struct cuda_loss_args {
    const float *outputs;   /* [rows, classes] */
    const uint32_t *labels; /* [rows] */
    float *gradient;        /* [rows, classes] */
    double *losses;         /* [rows] */
    uint64_t classes;
    double scale;
} cuda_loss_args;

/** sum_losses: *sum += the sum of the losses. Thread t adds up the rows t, t + CUDA_BLOCK, …, and
 *  then the threads are added pairwise. Launch: one block of CUDA_BLOCK threads. */
typedef struct cuda_sum_losses_args {
    const double *losses; /* [rows] */
    double *sum;
    uint64_t rows;
} cuda_sum_losses_args;

#endif
