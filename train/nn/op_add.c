/* SPDX-License-Identifier: Apache-2.0
 * add: computes out = in0 + in1, which joins the two branches of a residual connection.
 *     in0, in1, out [batch, any] */
#include <string.h>

#include "errors.h"
#include "op.h"

static ring_status add_shape(op_use *use)
{
    const op_shape *first = &use->in[0], *second = &use->in[1];
    char left[SHAPE_TEXT_MAX], right[SHAPE_TEXT_MAX];
    if (first->dims != second->dims || memcmp(first->dim, second->dim, sizeof first->dim) != 0)
        return train_fail(RING_ERR_CONFIG, "cannot add %s and %s", shape_text(first, left),
                          shape_text(second, right));
    use->out = *first;
    return RING_OK;
}

static void add_forward(const op_run *run)
{
    const size_t count = run->batch * shape_count(&run->use->out);
    for (size_t i = 0; i < count; i++)
        run->out[i] = run->in[0][i] + run->in[1][i];
}

static void add_inputs(const op_run *run)
{
    const size_t bytes = run->batch * shape_count(&run->use->out) * sizeof(float);
    for (int k = 0; k < 2; k++) {
        if (run->in_grad[k] != NULL)
            memcpy(run->in_grad[k], run->out_grad, bytes);
    }
}

const nn_op op_add = {
    .name = "add",
    .inputs = 2,
    .shape = add_shape,
    .fast = {add_forward, NULL, add_inputs},
};
