/* SPDX-License-Identifier: Apache-2.0
 * received: is the first node of a part of a network. Its output is an activation that another part
 * computed, and its gradient is sent back there; the caller of the passes does both.
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

/* Is not in the table of ops, because lists of layers cannot contain it. */
const nn_op op_received = {
    .name = "received",
    .inputs = 1,
    .is_received = true,
    .shape = received_shape,
    .fast = {nothing, NULL, nothing},
};
