/* SPDX-License-Identifier: Apache-2.0
 * flatten: makes each sample one row with the same elements, as torch.nn.Flatten does. If output
 * and input share memory, it copies nothing. in [batch, any]  out [batch, elements of any] */
#include <string.h>

#include "op.h"

static ring_status flatten_shape(op_use *use)
{
    use->out = (op_shape){.dim = {shape_count(&use->in[0])}, .dims = 1};
    return RING_OK;
}

static void copy(float *to, const float *from, const op_run *run)
{
    if (to != from)
        memcpy(to, from, run->batch * shape_count(&run->use->out) * sizeof(float));
}

static void flatten_forward(const op_run *run)
{
    copy(run->out, run->in[0], run);
}

static void flatten_inputs(const op_run *run)
{
    copy(run->in_grad[0], run->out_grad, run);
}

const nn_op op_flatten = {
    .name = "flatten",
    .inputs = 1,
    .in_place = true,
    .is_view = true,
    .shape = flatten_shape,
    .fast = {flatten_forward, NULL, flatten_inputs},
};
