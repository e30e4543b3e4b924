/* SPDX-License-Identifier: Apache-2.0
 * copied: copies the input of a layer whose outputs are divided among tensor ranks
 * (tensor_split.h). Each rank has a copy of the input, so the gradient is the sum over the ranks.
 * The caller computes that sum in out_grad before the backward pass runs this node. in, out [batch,
 * any] */
#include <string.h>

#include "op.h"

static ring_status copied_shape(op_use *use)
{
    use->out = use->in[0];
    return RING_OK;
}

static void copy(float *to, const float *from, const op_run *run)
{
    if (to != from)
        memcpy(to, from, run->batch * shape_count(&run->use->out) * sizeof(float));
}

static void copied_forward(const op_run *run)
{
    copy(run->out, run->in[0], run);
}

static void copied_inputs(const op_run *run)
{
    copy(run->in_grad[0], run->out_grad, run);
}

/* It is not in the table of ops, because lists of layers cannot contain it. */
const nn_op op_copied = {
    .name = "copied",
    .inputs = 1,
    .in_place = true,
    .is_view = true,
    .sums_grad = true,
    .shape = copied_shape,
    .fast = {copied_forward, NULL, copied_inputs},
};
