/* SPDX-License-Identifier: Apache-2.0
 * received: is the first node of a part of a network. The caller receives its output from another
 * part, and sends the output's gradient back to that part; so this op computes nothing.
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

/* It is not in the table of ops, because lists of layers cannot contain it. */
const nn_op op_received = {
    .name = "received",
    .inputs = 1,
    .is_received = true,
    .shape = received_shape,
    .fast = {nothing, NULL, nothing},
};
