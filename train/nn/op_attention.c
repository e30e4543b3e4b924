/* SPDX-License-Identifier: Apache-2.0
 * attention: computes causal self-attention with several heads, as
 * torch.nn.functional.scaled_dot_product_attention(is_causal=True) does. Each row of the input is a
 * query, a key and a value. For each head, out = softmax(q · kᵀ / √size) · v, where each token
 * attends to itself and earlier tokens. In training, weights are dropped with the given
 * probability, as by dropout_p; dropout_mask.h decides which ones. in [batch, tokens, 3 · features]
 * queries, keys and values, each of them head after head out [batch, tokens, features] saved
 * [batch, heads, tokens, tokens] the softmax, negative where a weight is dropped scratch [tokens,
 * tokens] the weights, then their gradient */
#include <math.h>

#include "dropout_mask.h"
#include "errors.h"
#include "exponential.h"
#include "gemm.h"

enum { ROW_PART = 256 /* elements of a mask that are drawn at a time */ };

static ring_status attention_shape(op_use *use)
{
    const op_shape *in = &use->in[0];
    const size_t heads = use->settings.heads, tokens = in->dim[0], features = in->dim[1] / 3;
    char text[SHAPE_TEXT_MAX];
    size_t count;
    if (in->dims != 2 || in->dim[1] % 3 != 0)
        return train_fail(RING_ERR_CONFIG, "attention takes [tokens, 3 * features], not %s",
                          shape_text(in, text));
    if (heads < 1 || features % heads != 0)
        return train_fail(RING_ERR_CONFIG, "%zu features cannot be split among %zu head%s",
                          features, heads, plural(heads));
    if (__builtin_mul_overflow(tokens, tokens, &count) ||
        __builtin_mul_overflow(count, heads, &count) || count > INT32_MAX / sizeof(float))
        return train_fail(RING_ERR_CONFIG, "attention of %zu head%s over %zu token%s is too large",
                          heads, plural(heads), tokens, plural(tokens));
    if (!(use->settings.probability >= 0.0 && use->settings.probability < 1.0))
        return train_fail(RING_ERR_CONFIG,
                          "dropout of attention is a probability from 0 to below 1, not %g",
                          use->settings.probability);
    use->out = (op_shape){.dim = {tokens, features}, .dims = 2};
    use->saved_bytes = count * sizeof(float);
    use->scratch_bytes = tokens * tokens * sizeof(float);
    return RING_OK;
}

/* One head of one sample: sizes and positions of its matrices in the arrays of the run. */
typedef struct attention_head {
    size_t tokens;
    size_t size;                  /* features of the head */
    size_t row_in, row_out;       /* distance in elements between rows of q, k and v, and of out */
    size_t q, k, v, out, softmax; /* offsets in in, out and saved */
    size_t sample;                /* number of the sample in the batch */
    size_t place; /* index of its first weight among the weights of all tensor ranks,
                     for the mask of dropout */
    float scale;  /* 1 / √size */
} attention_head;

static attention_head head_of(const op_run *run, size_t number)
{
    const op_use *use = run->use;
    const size_t tokens = use->out.dim[0], features = use->out.dim[1], heads = use->settings.heads;
    const size_t sample = number / heads, size = features / heads, at = number % heads * size;
    attention_head head = {.tokens = tokens,
                           .size = size,
                           .row_in = 3 * features,
                           .row_out = features,
                           .q = sample * tokens * 3 * features + at,
                           .out = sample * tokens * features + at,
                           .softmax = number * tokens * tokens,
                           .sample = sample,
                           .place = (use->settings.row_first / size + number % heads) * tokens *
                                    tokens,
                           .scale = (float)(1.0 / sqrt((double)size))};
    head.k = head.q + features;
    head.v = head.k + features;
    return head;
}

/* ---- Dropout ------------------------------------------------------------------------------- */

static bool drops(const op_run *run)
{
    return run->training && run->use->settings.probability > 0.0;
}

/* Marks the weights of token @p i that are dropped by making them negative; 0 becomes -0. */
static void drop_weights(const op_run *run, const attention_head *h, size_t i, float *row)
{
    uint8_t keep[ROW_PART];
    const size_t place = h->place + i * h->tokens;
    for (size_t begin = 0; begin <= i; begin += ROW_PART) {
        const size_t left = i + 1 - begin, count = left < ROW_PART ? left : ROW_PART;
        dropout_mask_draw(run, h->sample, place + begin, place + begin + count, keep);
        for (size_t j = 0; j < count; j++)
            row[begin + j] = keep[j] ? row[begin + j] : -row[begin + j];
    }
}

/* @return @p value times @p scale if the weight @p softmax is kept, else 0. A NaN is always kept.
 */
static float if_kept(float softmax, float value, float scale)
{
    return signbit(softmax) && !isnan(softmax) ? 0.0F : value * scale;
}

/* @return (tokens, tokens) the weights of the values: the softmax itself, or with dropout a copy of
 * it in scratch memory in which dropped weights are 0. */
static const float *weights_of(const op_run *run, const attention_head *h, const float *softmax)
{
    const size_t count = h->tokens * h->tokens;
    const float scale = dropout_mask_scale(run->use);
    float *weights = run->scratch;
    if (!drops(run))
        return softmax;
    for (size_t k = 0; k < count; k++)
        weights[k] = if_kept(softmax[k], softmax[k], scale);
    return weights;
}

/* ---- Fast ---------------------------------------------------------------------------------- */

/* Replaces the scores in row (tokens) by their softmax over @p token and the tokens before it;
 * later tokens get 0. The largest score is subtracted first, so that no exponential overflows. */
static void softmax_row(float *row, size_t token, size_t tokens, float scale)
{
    float top = row[0], sum = 0.0F;
    for (size_t j = 1; j <= token; j++)
        top = row[j] > top || row[j] != row[j] ? row[j] : top;
    for (size_t j = 0; j <= token; j++)
        row[j] = exponential((row[j] - top) * scale);
    for (size_t j = 0; j <= token; j++)
        sum += row[j];
    for (size_t j = 0; j <= token; j++)
        row[j] /= sum;
    for (size_t j = token + 1; j < tokens; j++)
        row[j] = 0.0F;
}

/* For each sample and head:
 *     scores (tokens, tokens) = q (tokens, size) · kᵀ (size, tokens)
 *     out (tokens, size) = weights (tokens, tokens) · v (tokens, size), weights = softmax(scores)
 */
static void attention_forward(const op_run *run)
{
    const float *in = run->in[0];
    for (size_t n = 0; n < run->batch * run->use->settings.heads; n++) {
        const attention_head h = head_of(run, n);
        float *softmax = (float *)(void *)run->saved + h.softmax;
        gemm_strided(false, true, h.tokens, h.tokens, h.size, in + h.q, h.row_in, in + h.k,
                     h.row_in, false, softmax, h.tokens);
        for (size_t i = 0; i < h.tokens; i++)
            softmax_row(softmax + i * h.tokens, i, h.tokens, h.scale);
        for (size_t i = 0; i < h.tokens && drops(run); i++)
            drop_weights(run, &h, i, softmax + i * h.tokens);
        gemm_strided(false, false, h.tokens, h.size, h.tokens, weights_of(run, &h, softmax),
                     h.tokens, in + h.v, h.row_in, false, run->out + h.out, h.row_out);
    }
}

/* Converts the gradient d of a row of the softmax p to that of the scores: p · (d - Σ p d) · scale.
 * The signs of the softmax, which mark dropped weights, are ignored. */
static void softmax_row_grad(float *restrict softmax_grad, const float *restrict softmax,
                             size_t count, float scale)
{
    float sum = 0.0F;
    for (size_t j = 0; j < count; j++)
        sum += fabsf(softmax[j]) * softmax_grad[j];
    for (size_t j = 0; j < count; j++)
        softmax_grad[j] = fabsf(softmax[j]) * (softmax_grad[j] - sum) * scale;
}

/* For each sample and head:
 *     v_grad (tokens, size) = weightsᵀ (tokens, tokens) · out_grad (tokens, size)
 *     weights_grad (tokens, tokens) = out_grad (tokens, size) · vᵀ (size, tokens), from which
 *     follow the gradients of the softmax before dropout and of the scores
 *     q_grad (tokens, size) = scores_grad (tokens, tokens) · k (tokens, size)
 *     k_grad (tokens, size) = scores_gradᵀ (tokens, tokens) · q (tokens, size) */
static void attention_inputs(const op_run *run)
{
    const float *in = run->in[0];
    float *in_grad = run->in_grad[0], *softmax_grad = run->scratch;
    const float kept_scale = dropout_mask_scale(run->use);
    for (size_t n = 0; n < run->batch * run->use->settings.heads; n++) {
        const attention_head h = head_of(run, n);
        const float *softmax = (const float *)(const void *)run->saved + h.softmax;
        const float *out_grad = run->out_grad + h.out;
        gemm_strided(true, false, h.tokens, h.size, h.tokens, weights_of(run, &h, softmax),
                     h.tokens, out_grad, h.row_out, false, in_grad + h.v, h.row_in);
        gemm_strided(false, true, h.tokens, h.tokens, h.size, out_grad, h.row_out, in + h.v,
                     h.row_in, false, softmax_grad, h.tokens);
        for (size_t k = 0; k < h.tokens * h.tokens && drops(run); k++)
            softmax_grad[k] = if_kept(softmax[k], softmax_grad[k], kept_scale);
        for (size_t i = 0; i < h.tokens; i++)
            softmax_row_grad(softmax_grad + i * h.tokens, softmax + i * h.tokens, h.tokens,
                             h.scale);
        gemm_strided(false, false, h.tokens, h.size, h.tokens, softmax_grad, h.tokens, in + h.k,
                     h.row_in, false, in_grad + h.q, h.row_in);
        gemm_strided(true, false, h.tokens, h.size, h.tokens, softmax_grad, h.tokens, in + h.q,
                     h.row_in, false, in_grad + h.k, h.row_in);
    }
}

const nn_op op_attention = {
    .name = "attention",
    .inputs = 1,
    .takes = TAKES_HEADS,
    .shape = attention_shape,
    .fast = {attention_forward, NULL, attention_inputs},
};
