/* SPDX-License-Identifier: Apache-2.0
 * avg_pool2d: computes the mean of each window, as torch.nn.AvgPool2d does; padding counts as
 * zeros. in [batch, channels, rows, columns]  out [batch, channels, out_rows, out_columns] */
#include <string.h>

#include "window.h"

static float sum_window(const float *plane, size_t columns, window_span y, window_span x)
{
    float sum = 0.0F;
    for (size_t row = y.first; row < y.end; row++) {
        for (size_t column = x.first; column < x.end; column++)
            sum += plane[row * columns + column];
    }
    return sum;
}

/* Adds @p value to all elements of a window. */
static void spread_window(float *plane, size_t columns, window_span y, window_span x, float value)
{
    for (size_t row = y.first; row < y.end; row++) {
        for (size_t column = x.first; column < x.end; column++)
            plane[row * columns + column] += value;
    }
}

/* Forward: writes the mean of each window of plane @p p. Backward: adds each window's gradient,
 * divided by its size, to all elements that it covers. */
static void pass_plane(const op_run *run, size_t p, bool forward)
{
    const op_window window = window_of(run->use);
    const size_t in_at = p * window.rows * window.columns;
    const float size = (float)(window.kernel * window.kernel);
    size_t out_at = p * window.out_rows * window.out_columns;
    for (size_t y = 0; y < window.out_rows; y++) {
        const window_span rows = window_at(&window, y, window.rows);
        for (size_t x = 0; x < window.out_columns; x++, out_at++) {
            const window_span columns = window_at(&window, x, window.columns);
            if (forward)
                run->out[out_at] = sum_window(run->in[0] + in_at, window.columns, rows, columns) /
                                   size;
            else
                spread_window(run->in_grad[0] + in_at, window.columns, rows, columns,
                              run->out_grad[out_at] / size);
        }
    }
}

static void avg_pool2d_forward(const op_run *run)
{
    for (size_t p = 0; p < run->batch * run->use->in[0].dim[0]; p++)
        pass_plane(run, p, true);
}

static void avg_pool2d_inputs(const op_run *run)
{
    memset(run->in_grad[0], 0, run->batch * shape_count(&run->use->in[0]) * sizeof(float));
    for (size_t p = 0; p < run->batch * run->use->in[0].dim[0]; p++)
        pass_plane(run, p, false);
}

const nn_op op_avg_pool2d = {
    .name = "avg_pool2d",
    .inputs = 1,
    .takes = TAKES_POOL,
    .shape = window_shape_pool,
    .fast = {avg_pool2d_forward, NULL, avg_pool2d_inputs},
};
