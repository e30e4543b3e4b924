/* SPDX-License-Identifier: Apache-2.0
 * linear: computes out = in · weightᵀ + bias, as torch.nn.Linear does. The rows are the samples of
 * the batch, or the tokens of all its samples.
 *     in [rows, inputs]  weight [outputs, inputs]  bias [outputs]  out [rows, outputs] */
#include <kernels.h>
#include <string.h>

#include "errors.h"
#include "gemm.h"
#include "op.h"

static ring_status linear_shape(op_use *use)
{
    if (use->in[0].dims > 2)
        return train_fail(RING_ERR_CONFIG, "linear takes [features] or [tokens, features]; put a "
                                           "flatten before it");
    const size_t inputs = shape_width(&use->in[0]), outputs = use->settings.outputs;
    const double deviation = use->settings.deviation;
    use->out = use->in[0];
    use->out.dim[use->out.dims - 1] = outputs;
    use->tensors[0] = (op_tensor){.name = "weight",
                                  .shape = {outputs, inputs},
                                  .dims = 2,
                                  .group = GROUP_DECAY,
                                  .start = deviation > 0.0 ? START_NORMAL : START_UNIFORM,
                                  .fan_in = inputs,
                                  .deviation = deviation};
    use->tensors[1] = (op_tensor){.name = "bias",
                                  .shape = {outputs},
                                  .dims = 1,
                                  .group = GROUP_NO_DECAY,
                                  .start = deviation > 0.0 ? START_ZEROS : START_UNIFORM,
                                  .fan_in = inputs};
    use->tensor_count = use->settings.no_bias ? 1 : 2;
    return RING_OK;
}

/* Sizes of the products of one run. */
typedef struct linear_sizes {
    size_t rows, inputs, outputs;
} linear_sizes;

static linear_sizes sizes_of(const op_run *run)
{
    const op_use *use = run->use;
    return (linear_sizes){.rows = run->batch * shape_rows(&use->in[0]),
                          .inputs = shape_width(&use->in[0]),
                          .outputs = shape_width(&use->out)};
}

/* out (rows, outputs) = in (rows, inputs) · weightᵀ (inputs, outputs) + bias (outputs) */
static void linear_forward(const op_run *run)
{
    const linear_sizes n = sizes_of(run);
    gemm(false, true, n.rows, n.outputs, n.inputs, run->in[0], run->params[0], false, run->out);
    if (!run->use->settings.no_bias)
        kernel_add_to_rows(run->out, run->params[1], n.rows, n.outputs);
}

/* bias_grad (outputs) = sum over the rows of out_grad (rows, outputs)
 * weight_grad (outputs, inputs) = out_gradᵀ (outputs, rows) · in (rows, inputs) */
static void linear_params(const op_run *run)
{
    const linear_sizes n = sizes_of(run);
    const bool has_bias = !run->use->settings.no_bias;
    if (has_bias && !run->add[1])
        memset(run->grads[1], 0, n.outputs * sizeof(float));
    if (has_bias)
        kernel_add_rows(run->grads[1], run->out_grad, n.rows, n.outputs);
    gemm(true, false, n.outputs, n.inputs, n.rows, run->out_grad, run->in[0], run->add[0],
         run->grads[0]);
}

/* in_grad (rows, inputs) = out_grad (rows, outputs) · weight (outputs, inputs) */
static void linear_inputs(const op_run *run)
{
    const linear_sizes n = sizes_of(run);
    gemm(false, false, n.rows, n.inputs, n.outputs, run->out_grad, run->params[0], false,
         run->in_grad[0]);
}

const nn_op op_linear = {
    .name = "linear",
    .inputs = 1,
    .takes = TAKES_OUTPUTS | TAKES_BIAS | TAKES_DEVIATION,
    .shape = linear_shape,
    .fast = {linear_forward, linear_params, linear_inputs},
};
