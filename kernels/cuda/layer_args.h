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
 *  add_to_rows: rows[i, c, p] += row[c]; if @c relu is set, then the larger of that and 0, as
 *  map_relu. Launch: cuda_tiles(elements of rows, 1, CUDA_BLOCK) blocks of CUDA_BLOCK threads.
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
    uint32_t adds, relu;
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
    const cuda_update *update; /* its step instead of @c step; NULL: none */
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

/* ---- updates.cu ---- */

/** Result of an update, in the host's memory. */
typedef struct cuda_update_result {
    double loss;    /* sum of the losses */
    double squares; /* sum of the squares of the gradients */
    uint64_t skips;
    uint64_t count; /* number of the update, from 1, written last */
} cuda_update_result;

/** take: copies the samples of a micro-batch to where the network reads them. What the host states
 *  of an update is a record, in pinned memory. Launch: a block of CUDA_BLOCK threads for each
 *  sample. */
typedef struct cuda_take_args {
    cuda_update *update;
    const unsigned char *records; /* [record_count, record_bytes] update n has record n %
                                     record_count: its step, then its factors from
                                     CUDA_FACTORS_BYTES on, then the numbers of its samples */
    uint64_t record_bytes, record_count;
    uint64_t factors;    /* bytes of factors */
    uint64_t first;      /* the micro-batch's first sample in the update */
    uint64_t begins;     /* 1: the first micro-batch, which sets the update's numbers */
    uint64_t samples_at; /* offset in the record of sample numbers */
    /* Samples on the device: bytes and labels by sample number; or, if bytes is NULL, in the record
     * from inputs_at and labels_at on, in the order of the update. */
    const uint8_t *bytes;       /* [samples, features] */
    const uint8_t *byte_labels; /* [samples] */
    const float *values;        /* [channels, 256] the number of each byte */
    uint64_t features, plane;   /* bytes of a sample, and of one of its channels */
    uint64_t inputs_at, labels_at;
    float *inputs;     /* [rows, features] */
    uint32_t *labels;  /* [rows] */
    uint32_t *samples; /* [rows] */
} cuda_take_args;

/** judge: decides whether the update skips, computes the factor that clips its gradients, and
 *  writes its result. Launch: one block of CUDA_BLOCK threads. */
typedef struct cuda_judge_args {
    cuda_update *update;
    const double *sums; /* [parts] of squares, added up as by norm_finish */
    uint64_t parts;
    double most;                 /* the limit of the norm; 0: there is none */
    cuda_update_result *results; /* [record_count] */
    uint64_t record_count;
} cuda_judge_args;

#endif
