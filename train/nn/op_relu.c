/* SPDX-License-Identifier: Apache-2.0
 * relu: out = max(in, 0), as torch.nn.ReLU; NaN stays NaN.
 *     in, out [batch, any] */
#include "op.h"

/* Where in and out are one, no element depends on another all the same. */
#define FOR_EACH(i, count) _Pragma("GCC ivdep") for (size_t i = 0; i < (count); i++)

static ring_status relu_shape(op_use *use)
{
    use->out = use->in[0];
    return RING_OK;
}

static void relu_forward_reference(const op_run *run)
{
    const size_t count = run->batch * shape_count(&run->use->out);
    const float *in = run->in[0];
    float *out = run->out; /* may be in */
    FOR_EACH(i, count)
    out[i] = in[i] < 0.0F ? 0.0F : in[i];
}

/* Where the output was cut, no gradient passes. */
static void relu_inputs_reference(const op_run *run)
{
    const size_t count = run->batch * shape_count(&run->use->out);
    const float *out = run->out, *out_delta = run->out_delta;
    float *in_delta = run->in_delta[0]; /* may be out_delta */
    FOR_EACH(i, count)
    {
        const float delta = out_delta[i]; /* read in any case, so that there is no branch */
        in_delta[i] = out[i] > 0.0F ? delta : 0.0F;
    }
}

const nn_op op_relu = {
    .name = "relu",
    .inputs = 1,
    .in_place = true,
    .keeps_output = true,
    .shape = relu_shape,
    .fast = {relu_forward_reference, NULL, relu_inputs_reference},
    .reference = {relu_forward_reference, NULL, relu_inputs_reference},
};
