/* SPDX-License-Identifier: Apache-2.0
 * summed: computes the output of a layer whose inputs are divided among tensor ranks
 * (tensor_split.h): out = in + bias, where in is the sum of the ranks' partial outputs. The caller
 * computes that sum in place before the forward pass runs this node. The partial outputs of all
 * ranks have the same gradient. in, out [rows, outputs]  bias [outputs] */
#include <kernels.h>
#include <string.h>

#include "op.h"

static ring_status summed_shape(op_use *use)
{
    use->out = use->in[0];
    use->tensors[0] = (op_tensor){.name = "bias",
                                  .shape = {shape_width(&use->out)},
                                  .dims = 1,
                                  .group = GROUP_NO_DECAY};
    use->tensor_count = use->settings.no_bias ? 0 : 1;
    return RING_OK;
}

static void summed_forward(const op_run *run)
{
    const size_t width = shape_width(&run->use->out),
                 rows = run->batch * shape_rows(&run->use->out);
    if (run->out != run->in[0])
        memcpy(run->out, run->in[0], rows * width * sizeof(float));
    if (!run->use->settings.no_bias)
        kernel_add_to_rows(run->out, run->params[0], rows, width);
}

/* bias_grad (outputs) = sum over the rows of out_grad (rows, outputs) */
static void summed_params(const op_run *run)
{
    const size_t width = shape_width(&run->use->out),
                 rows = run->batch * shape_rows(&run->use->out);
    if (!run->add[0])
        memset(run->grads[0], 0, width * sizeof(float));
    kernel_add_rows(run->grads[0], run->out_grad, rows, width);
}

static void summed_inputs(const op_run *run)
{
    const size_t count = run->batch * shape_count(&run->use->out);
    if (run->in_grad[0] != run->out_grad)
        memcpy(run->in_grad[0], run->out_grad, count * sizeof(float));
}

/* It is not in the table of ops, because lists of layers cannot contain it. */
const nn_op op_summed = {
    .name = "summed",
    .inputs = 1,
    .in_place = true,
    .sums_input = true,
    .shape = summed_shape,
    .fast = {summed_forward, summed_params, summed_inputs},
};
