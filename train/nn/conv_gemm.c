/* SPDX-License-Identifier: Apache-2.0
 * Computes convolutions as matrix products, sample by sample. The matrix "columns" contains the
 * elements of all windows: it has a row for each weight of an output channel and a column for each
 * place of the output, that is [channels · kernel · kernel, out_rows · out_columns]. */
#include <string.h>

#include "conv.h"
#include "gemm.h"
#include "window.h"

/* Sizes of the matrices. */
typedef struct conv_sizes {
    op_window window;
    size_t outputs;             /* channels of the output */
    size_t weights;             /* weights of one output channel */
    size_t places;              /* elements of one channel of the output */
    size_t in_count, out_count; /* elements of one sample of the input and the output */
} conv_sizes;

static conv_sizes sizes_of(const op_use *use)
{
    const op_window window = window_of(use);
    return (conv_sizes){.window = window,
                        .outputs = use->out.dim[0],
                        .weights = window.channels * window.kernel * window.kernel,
                        .places = window.out_rows * window.out_columns,
                        .in_count = shape_count(&use->in[0]),
                        .out_count = shape_count(&use->out)};
}

size_t conv_gemm_scratch_bytes(const op_use *use)
{
    const conv_sizes sizes = sizes_of(use);
    return sizes.weights * sizes.places * sizeof(float);
}

/* The source of one row of "columns": offset of a channel of the image, and a place in the window.
 */
typedef struct column_row {
    size_t plane, y, x;
} column_row;

static column_row row_of(const op_window *window, size_t weight)
{
    const size_t area = window->kernel * window->kernel, place = weight % area;
    return (column_row){weight / area * window->rows * window->columns, place / window->kernel,
                        place % window->kernel};
}

/* @return the index on an axis of the image for place @p k of window @p at. In the padding the
 * index is not below the axis's length; before the image it wraps around to a large number. */
static size_t element_at(const op_window *window, size_t at, size_t k)
{
    return at * window->stride + k - window->padding;
}

/* Fills row [out_rows, out_columns] with the elements at one place of all windows; 0 in the
 * padding. */
static void fill_row(const op_window *window, size_t weight, const float *image, float *row)
{
    const column_row from = row_of(window, weight);
    for (size_t y = 0; y < window->out_rows; y++) {
        const size_t in_y = element_at(window, y, from.y);
        const float *line = image + from.plane + in_y * window->columns;
        for (size_t x = 0; x < window->out_columns; x++, row++) {
            const size_t in_x = element_at(window, x, from.x);
            *row = in_y < window->rows && in_x < window->columns ? line[in_x] : 0.0F;
        }
    }
}

/* The transpose of fill_row(): adds each element of the row to the one that it was copied from. */
static void spread_row(const op_window *window, size_t weight, const float *row, float *image)
{
    const column_row to = row_of(window, weight);
    for (size_t y = 0; y < window->out_rows; y++) {
        const size_t in_y = element_at(window, y, to.y);
        for (size_t x = 0; x < window->out_columns; x++, row++) {
            const size_t in_x = element_at(window, x, to.x);
            if (in_y < window->rows && in_x < window->columns)
                image[to.plane + in_y * window->columns + in_x] += *row;
        }
    }
}

static void fill_columns(const conv_sizes *sizes, const float *image, float *columns)
{
    for (size_t w = 0; w < sizes->weights; w++)
        fill_row(&sizes->window, w, image, columns + w * sizes->places);
}

/* For each sample: out [outputs, places] = weight [outputs, weights] · columns [weights, places] +
 * bias [outputs, 1] */
void conv_gemm_forward(const op_run *run)
{
    const conv_sizes sizes = sizes_of(run->use);
    for (size_t i = 0; i < run->batch; i++) {
        float *out = run->out + i * sizes.out_count;
        fill_columns(&sizes, run->in[0] + i * sizes.in_count, run->scratch);
        for (size_t at = 0; at < sizes.out_count; at++)
            out[at] = run->params[1][at / sizes.places];
        gemm(false, false, sizes.outputs, sizes.places, sizes.weights, run->params[0], run->scratch,
             true, out);
    }
}

/* Adds up in 16 independent lanes, so that the compiler can vectorize; the order of the additions
 * is always the same. */
static float sum_plane(const float *plane, size_t places)
{
    enum { LANES = 16 };
    float lanes[LANES] = {0}, sum = 0.0F;
    size_t p = 0;
    for (; p + LANES <= places; p += LANES) {
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += plane[p + l];
    }
    for (; p < places; p++)
        sum += plane[p];
    for (size_t l = 0; l < LANES; l++)
        sum += lanes[l];
    return sum;
}

void conv_bias_gradient(const op_run *run)
{
    const size_t outputs = run->use->out.dim[0], count = shape_count(&run->use->out);
    const size_t places = count / outputs;
    if (!run->add[1])
        memset(run->grads[1], 0, outputs * sizeof(float));
    for (size_t i = 0; i < run->batch; i++) {
        for (size_t c = 0; c < outputs; c++)
            run->grads[1][c] += sum_plane(run->out_grad + i * count + c * places, places);
    }
}

/* weight_grad [outputs, weights] = sum over samples of out_grad [outputs, places] · columnsᵀ
 * [places, weights] */
void conv_gemm_params(const op_run *run)
{
    const conv_sizes sizes = sizes_of(run->use);
    conv_bias_gradient(run);
    for (size_t i = 0; i < run->batch; i++) {
        fill_columns(&sizes, run->in[0] + i * sizes.in_count, run->scratch);
        gemm(false, true, sizes.outputs, sizes.weights, sizes.places,
             run->out_grad + i * sizes.out_count, run->scratch, run->add[0] || i > 0,
             run->grads[0]);
    }
}

/* For each sample: columns [weights, places] = weightᵀ [weights, outputs] · out_grad [outputs,
 * places]; each row is then added to the elements of in_grad that it was copied from in forward. */
void conv_gemm_inputs(const op_run *run)
{
    const conv_sizes sizes = sizes_of(run->use);
    memset(run->in_grad[0], 0, run->batch * sizes.in_count * sizeof(float));
    for (size_t i = 0; i < run->batch; i++) {
        const float *columns = run->scratch;
        gemm(true, false, sizes.weights, sizes.places, sizes.outputs, run->params[0],
             run->out_grad + i * sizes.out_count, false, run->scratch);
        for (size_t w = 0; w < sizes.weights; w++)
            spread_row(&sizes.window, w, columns + w * sizes.places,
                       run->in_grad[0] + i * sizes.in_count);
    }
}
