/* SPDX-License-Identifier: Apache-2.0
 * max_pool2d: computes the maximum of each window, as torch.nn.MaxPool2d does: padding is never the
 * maximum, the first of equal maxima gets the gradient, and NaN is larger than any number.
 *     in [batch, channels, rows, columns]  out [batch, channels, out_rows, out_columns]
 *     saved [elements of out] uint32: index of each output's maximum in its channel of in */
#include <math.h>
#include <string.h>

#include "errors.h"
#include "window.h"

static ring_status max_pool2d_shape(op_use *use)
{
    RING_TRY(window_shape_pool(use));
    use->saved_bytes = shape_count(&use->out) * sizeof(uint32_t);
    return RING_OK;
}

/* @return the index in @p plane of the window's maximum. */
static uint32_t find_maximum(const float *plane, size_t columns, window_span y, window_span x)
{
    size_t best = y.first * columns + x.first;
    for (size_t row = y.first; row < y.end; row++) {
        for (size_t at = row * columns + x.first; at < row * columns + x.end; at++) {
            if (plane[at] > plane[best] || isnan(plane[at]))
                best = at;
        }
    }
    return (uint32_t)best;
}

static void pool_plane(const op_window *window, const float *in, float *out, uint32_t *places)
{
    for (size_t y = 0; y < window->out_rows; y++) {
        const window_span rows = window_at(window, y, window->rows);
        for (size_t x = 0; x < window->out_columns; x++) {
            const uint32_t place = find_maximum(in, window->columns, rows,
                                                window_at(window, x, window->columns));
            *places++ = place;
            *out++ = in[place];
        }
    }
}

/* Forward for windows of any size. */
static void pool_any_windows(const op_run *run)
{
    const op_window window = window_of(run->use);
    const size_t in_plane = window.rows * window.columns,
                 out_plane = window.out_rows * window.out_columns;
    uint32_t *places = (void *)run->saved;
    for (size_t p = 0; p < run->batch * window.channels; p++)
        pool_plane(&window, run->in[0] + p * in_plane, run->out + p * out_plane,
                   places + p * out_plane);
}

/* in_grad = 0 except at the maxima. Windows may overlap, so an element that is the maximum of
 * several gets the sum of their gradients. */
static void max_pool2d_inputs(const op_run *run)
{
    const op_window window = window_of(run->use);
    const size_t in_plane = window.rows * window.columns,
                 out_plane = window.out_rows * window.out_columns;
    const uint32_t *places = (const void *)run->saved;
    const float *out_grad = run->out_grad;
    memset(run->in_grad[0], 0, run->batch * window.channels * in_plane * sizeof(float));
    for (size_t p = 0; p < run->batch * window.channels; p++) {
        float *in_grad = run->in_grad[0] + p * in_plane;
        for (size_t i = 0; i < out_plane; i++)
            in_grad[*places++] += *out_grad++;
    }
}

/* ---- Windows of 2 x 2 that do not overlap -------------------------------------------------- */

/* The largest value so far and its index. Both have 32 bits and are selected without branches, so
 * that the compiler can vectorize the loop. The comparisons are the same as in find_maximum(). */
typedef struct candidate {
    float value;
    uint32_t place;
} candidate;

static inline candidate better(candidate best, float value, uint32_t place)
{
    const bool wins = (value > best.value) | (value != value);
    return (candidate){wins ? value : best.value, wins ? place : best.place};
}

/* Pools two rows of the input (2 · count) into one row of the output (count).
 * @param at  index of upper[0] in the plane */
static void pool_two_rows(const float *restrict upper, const float *restrict lower, uint32_t at,
                          uint32_t columns, size_t count, float *restrict out,
                          uint32_t *restrict places)
{
    for (size_t x = 0; x < count; x++) {
        candidate best = {upper[2 * x], 0};
        best = better(best, upper[2 * x + 1], 1);
        best = better(best, lower[2 * x], columns);
        best = better(best, lower[2 * x + 1], columns + 1);
        out[x] = best.value;
        places[x] = at + 2 * (uint32_t)x + best.place;
    }
}

static void pool_plane_by_two(const op_window *window, const float *in, float *out,
                              uint32_t *places)
{
    const size_t columns = window->columns, out_columns = window->out_columns;
    for (size_t y = 0; y < window->out_rows; y++) {
        const size_t at = 2 * y * columns;
        pool_two_rows(in + at, in + at + columns, (uint32_t)at, (uint32_t)columns, out_columns,
                      out + y * out_columns, places + y * out_columns);
    }
}

static void max_pool2d_forward(const op_run *run)
{
    const op_window window = window_of(run->use);
    const size_t in_plane = window.rows * window.columns,
                 out_plane = window.out_rows * window.out_columns;
    uint32_t *places = (void *)run->saved;
    if (window.kernel != 2 || window.stride != 2 || window.padding != 0) {
        pool_any_windows(run);
        return;
    }
    for (size_t p = 0; p < run->batch * window.channels; p++)
        pool_plane_by_two(&window, run->in[0] + p * in_plane, run->out + p * out_plane,
                          places + p * out_plane);
}

const nn_op op_max_pool2d = {
    .name = "max_pool2d",
    .inputs = 1,
    .takes = TAKES_POOL,
    .shape = max_pool2d_shape,
    .fast = {max_pool2d_forward, NULL, max_pool2d_inputs},
};
