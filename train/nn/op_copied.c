/* SPDX-License-Identifier: Apache-2.0
 * copied: what a layer takes whose outputs ranks share out (tensor_split.h). Each rank has a copy
 * of it, so its gradient is the sum of theirs: whoever runs the network makes that out_grad before
 * backward comes here.
 *     in, out [batch, any] */
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

/* Not in the table of ops: no list of layers has it. */
const nn_op op_copied = {
    .name = "copied",
    .inputs = 1,
    .in_place = true,
    .is_view = true,
    .sums_grad = true,
    .shape = copied_shape,
    .fast = {copied_forward, NULL, copied_inputs},
};
