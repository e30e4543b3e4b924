/* SPDX-License-Identifier: Apache-2.0
 * received: the first node of a part of a network. Its output is an activation that comes from
 * another part, and its gradient goes back there; whoever runs the part brings and takes both.
 *     in, out [batch, any] */
#include "op.h"

static ring_status received_shape(op_use *use)
{
    use->out = use->in[0];
    return RING_OK;
}

static void nothing(const op_run *run)
{
    (void)run;
}

/* Not in the table of ops: no list of layers has it. */
const nn_op op_received = {
    .name = "received",
    .inputs = 1,
    .is_received = true,
    .shape = received_shape,
    .fast = {nothing, NULL, nothing},
};
