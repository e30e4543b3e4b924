/* SPDX-License-Identifier: Apache-2.0
 * embedding: looks up a row of the table for each word, as torch.nn.Embedding does. Words are whole
 * numbers stored as floats. For a number that is not in the table, the output is NaN, so that the
 * loss reveals the error.
 *     in [batch, tokens]  weight [words, features]  out [batch, tokens, features] */
#include <math.h>
#include <string.h>

#include "errors.h"
#include "op.h"

static ring_status embedding_shape(op_use *use)
{
    char text[SHAPE_TEXT_MAX];
    const size_t words = use->settings.words, features = use->settings.outputs;
    const double deviation = use->settings.deviation;
    if (use->in[0].dims != 1)
        return train_fail(RING_ERR_CONFIG, "embedding takes [tokens], not %s",
                          shape_text(&use->in[0], text));
    if (words < 1)
        return train_fail(RING_ERR_CONFIG, "embedding needs at least one word");
    use->out = (op_shape){.dim = {use->in[0].dim[0], features}, .dims = 2};
    use->tensors[0] = (op_tensor){.name = "weight",
                                  .shape = {words, features},
                                  .dims = 2,
                                  .group = GROUP_EMBEDDING,
                                  .start = START_NORMAL,
                                  .deviation = deviation > 0.0 ? deviation : 1.0};
    use->tensor_count = 1;
    return RING_OK;
}

/* @return the word's number, or SIZE_MAX if the table does not have it. */
static size_t word_at(const op_run *run, size_t i)
{
    const float word = run->in[0][i];
    return word >= 0.0F && word < (float)run->use->settings.words ? (size_t)word : SIZE_MAX;
}

static void embedding_forward(const op_run *run)
{
    const size_t features = shape_width(&run->use->out);
    const size_t rows = run->batch * run->use->in[0].dim[0];
    for (size_t i = 0; i < rows; i++) {
        const size_t word = word_at(run, i);
        float *out = run->out + i * features;
        for (size_t j = 0; j < features; j++)
            out[j] = word != SIZE_MAX ? run->params[0][word * features + j] : NAN;
    }
}

/* weight_grad[word] (features) = sum of out_grad (features) over the tokens that are this word */
static void embedding_params(const op_run *run)
{
    const size_t features = shape_width(&run->use->out);
    const size_t rows = run->batch * run->use->in[0].dim[0];
    if (!run->add[0])
        memset(run->grads[0], 0, run->use->settings.words * features * sizeof(float));
    for (size_t i = 0; i < rows; i++) {
        const size_t word = word_at(run, i);
        const float *out_grad = run->out_grad + i * features;
        for (size_t j = 0; j < features && word != SIZE_MAX; j++)
            run->grads[0][word * features + j] += out_grad[j];
    }
}

/* The number of a word is not differentiable: its gradient is 0. */
static void embedding_inputs(const op_run *run)
{
    memset(run->in_grad[0], 0, run->batch * shape_count(&run->use->in[0]) * sizeof(float));
}

const nn_op op_embedding = {
    .name = "embedding",
    .inputs = 1,
    .takes = TAKES_OUTPUTS | TAKES_WORDS | TAKES_DEVIATION,
    .shape = embedding_shape,
    .fast = {embedding_forward, embedding_params, embedding_inputs},
};
