/* SPDX-License-Identifier: Apache-2.0
 * conv2d: cross-correlation with square kernels, as torch.nn.Conv2d.
 *     in [batch, channels, rows, columns]  weight [outputs, channels, kernel, kernel]
 *     bias [outputs]  out [batch, outputs, out_rows, out_columns]
 * conv.h computes it; here are its shapes and the plain loops. */
#include <string.h>

#include "conv.h"
#include "errors.h"
#include "window.h"

static ring_status conv2d_shape(op_use *use)
{
    RING_TRY(window_check(use));
    const op_window window = window_of(use);
    const size_t outputs = use->settings.outputs, kernel = window.kernel;
    const size_t fan_in = window.channels * kernel * kernel;
    use->out = (op_shape){.dim = {outputs, window.out_rows, window.out_columns}, .dims = 3};
    use->tensors[0] = (op_tensor){.name = "weight",
                                  .shape = {outputs, window.channels, kernel, kernel},
                                  .dims = 4,
                                  .group = GROUP_DECAY,
                                  .fan_in = fan_in};
    use->tensors[1] = (op_tensor){
        .name = "bias", .shape = {outputs}, .dims = 1, .group = GROUP_NO_DECAY, .fan_in = fan_in};
    use->tensor_count = 2;
    use->scratch_bytes = conv_scratch_bytes(use);
    return RING_OK;
}

/* ---- Reference ----------------------------------------------------------------------------- */

/* The operands of one window: output channel @p outputs of sample @p i at place (y, x). */
typedef struct conv_place {
    size_t sample, output, y, x;
} conv_place;

/* Calls @p visit with the places of input and weight under each place of the output. */
typedef void conv_visit(const op_run *run, size_t in_at, size_t weight_at, size_t out_at);

static void visit_window(const op_run *run, const op_window *window, conv_place place,
                         size_t out_at, conv_visit *visit)
{
    const size_t kernel = window->kernel, plane = window->rows * window->columns;
    const window_span rows = window_at(window, place.y, window->rows);
    const window_span columns = window_at(window, place.x, window->columns);
    for (size_t c = 0; c < window->channels; c++) {
        for (size_t y = rows.first; y < rows.end; y++) {
            const size_t weight_y = y + window->padding - place.y * window->stride;
            for (size_t x = columns.first; x < columns.end; x++) {
                const size_t weight_x = x + window->padding - place.x * window->stride;
                const size_t weights = place.output * window->channels + c;
                visit(run, (place.sample * window->channels + c) * plane + y * window->columns + x,
                      (weights * kernel + weight_y) * kernel + weight_x, out_at);
            }
        }
    }
}

static void visit_all(const op_run *run, conv_visit *visit)
{
    const op_window window = window_of(run->use);
    const size_t outputs = run->use->out.dim[0], places = window.out_rows * window.out_columns;
    for (size_t at = 0; at < run->batch * outputs * places; at++) {
        const size_t place = at % places;
        visit_window(run, &window,
                     (conv_place){.sample = at / places / outputs,
                                  .output = at / places % outputs,
                                  .y = place / window.out_columns,
                                  .x = place % window.out_columns},
                     at, visit);
    }
}

static void visit_forward(const op_run *run, size_t in_at, size_t weight_at, size_t out_at)
{
    run->out[out_at] += run->in[0][in_at] * run->params[0][weight_at];
}

static void visit_params(const op_run *run, size_t in_at, size_t weight_at, size_t out_at)
{
    run->grads[0][weight_at] += run->in[0][in_at] * run->out_delta[out_at];
}

static void visit_inputs(const op_run *run, size_t in_at, size_t weight_at, size_t out_at)
{
    run->in_delta[0][in_at] += run->params[0][weight_at] * run->out_delta[out_at];
}

static void conv2d_forward_reference(const op_run *run)
{
    const size_t outputs = run->use->out.dim[0], count = shape_count(&run->use->out);
    for (size_t at = 0; at < run->batch * count; at++)
        run->out[at] = run->params[1][at / (count / outputs) % outputs];
    visit_all(run, visit_forward);
}

static void conv2d_params_reference(const op_run *run)
{
    const op_tensor *weight = &run->use->tensors[0];
    conv_bias_gradient(run);
    if (!run->add[0])
        memset(run->grads[0], 0, weight->shape[0] * weight->fan_in * sizeof(float));
    visit_all(run, visit_params);
}

static void conv2d_inputs_reference(const op_run *run)
{
    memset(run->in_delta[0], 0, run->batch * shape_count(&run->use->in[0]) * sizeof(float));
    visit_all(run, visit_inputs);
}

const nn_op op_conv2d = {
    .name = "conv2d",
    .inputs = 1,
    .takes = TAKES_OUTPUTS | TAKES_WINDOW,
    .shape = conv2d_shape,
    .fast = {conv_forward, conv_params, conv_inputs},
    .reference = {conv2d_forward_reference, conv2d_params_reference, conv2d_inputs_reference},
    .prepare = conv_prepare,
    .release = conv_release,
};
