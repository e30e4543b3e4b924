/* SPDX-License-Identifier: Apache-2.0
 * position_embedding: computes out = in + weight, where weight has a learned row for each position
 * in the text. in, out [batch, tokens, features]  weight [tokens, features] */
#include <string.h>

#include "errors.h"
#include "op.h"

static ring_status position_embedding_shape(op_use *use)
{
    char text[SHAPE_TEXT_MAX];
    const double deviation = use->settings.deviation;
    if (use->in[0].dims != 2)
        return train_fail(RING_ERR_CONFIG, "position_embedding takes [tokens, features], not %s",
                          shape_text(&use->in[0], text));
    use->out = use->in[0];
    use->tensors[0] = (op_tensor){.name = "weight",
                                  .shape = {use->out.dim[0], use->out.dim[1]},
                                  .dims = 2,
                                  .group = GROUP_EMBEDDING,
                                  .start = START_NORMAL,
                                  .deviation = deviation > 0.0 ? deviation : 1.0};
    use->tensor_count = 1;
    return RING_OK;
}

static void position_embedding_forward(const op_run *run)
{
    const size_t count = shape_count(&run->use->out);
    for (size_t i = 0; i < run->batch; i++) {
        for (size_t j = 0; j < count; j++)
            run->out[i * count + j] = run->in[0][i * count + j] + run->params[0][j];
    }
}

/* weight_grad (tokens, features) = sum of out_grad (batch, tokens, features) over the batch */
static void position_embedding_params(const op_run *run)
{
    const size_t count = shape_count(&run->use->out);
    float *grad = run->grads[0];
    if (!run->add[0])
        memset(grad, 0, count * sizeof(float));
    for (size_t i = 0; i < run->batch; i++) {
        const float *out_grad = run->out_grad + i * count;
        for (size_t j = 0; j < count; j++)
            grad[j] += out_grad[j];
    }
}

static void position_embedding_inputs(const op_run *run)
{
    if (run->in_grad[0] != run->out_grad)
        memcpy(run->in_grad[0], run->out_grad,
               run->batch * shape_count(&run->use->out) * sizeof(float));
}

const nn_op op_position_embedding = {
    .name = "position_embedding",
    .inputs = 1,
    .takes = TAKES_DEVIATION,
    .in_place = true,
    .shape = position_embedding_shape,
    .fast = {position_embedding_forward, position_embedding_params, position_embedding_inputs},
};
