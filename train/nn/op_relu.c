/* SPDX-License-Identifier: Apache-2.0
 * relu: computes out = max(in, 0), as torch.nn.ReLU does; NaN stays NaN.
 *     in, out [batch, any] */
#include <kernels.h>

#include "op.h"

static ring_status relu_shape(op_use *use)
{
    use->out = use->in[0];
    return RING_OK;
}

static void relu_forward(const op_run *run)
{
    kernel_relu(run->out, run->in[0], run->batch * shape_count(&run->use->out));
}

/* in_grad = out_grad where out is above 0, else 0 */
static void relu_inputs(const op_run *run)
{
    kernel_relu_gradient(run->in_grad[0], run->out_grad, run->out,
                         run->batch * shape_count(&run->use->out));
}

const nn_op op_relu = {
    .name = "relu",
    .inputs = 1,
    .in_place = true,
    .keeps_output = true,
    .shape = relu_shape,
    .fast = {relu_forward, NULL, relu_inputs},
};
