/* SPDX-License-Identifier: Apache-2.0
 * tanh: computes out = tanh(in) for each element, as torch.nn.Tanh does.
 *     in, out [batch, any] */
#include <math.h>

#include "op.h"

static ring_status tanh_shape(op_use *use)
{
    use->out = use->in[0];
    return RING_OK;
}

static void tanh_forward(const op_run *run)
{
    const size_t count = run->batch * shape_count(&run->use->out);
    for (size_t i = 0; i < count; i++)
        run->out[i] = tanhf(run->in[0][i]);
}

/* in_grad = out_grad · (1 - out²), since d tanh(x) / dx = 1 - tanh²(x) */
static void tanh_inputs(const op_run *run)
{
    const size_t count = run->batch * shape_count(&run->use->out);
    const float *out = run->out, *out_grad = run->out_grad;
    float *in_grad = run->in_grad[0]; /* may be out_grad */
    for (size_t i = 0; i < count; i++)
        in_grad[i] = out_grad[i] * (1.0F - out[i] * out[i]);
}

const nn_op op_tanh = {
    .name = "tanh",
    .inputs = 1,
    .in_place = true,
    .keeps_output = true,
    .shape = tanh_shape,
    .fast = {tanh_forward, NULL, tanh_inputs},
};
