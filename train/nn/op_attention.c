/* SPDX-License-Identifier: Apache-2.0
 * attention: causal self-attention of several heads, as
 * torch.nn.functional.scaled_dot_product_attention(is_causal=True) of the rows' thirds: for each
 * head, out = softmax(q · kᵀ / √size, over itself and earlier tokens) · v.
 *     in [batch, tokens, 3 · features] queries, keys and values, each head after head
 *     out [batch, tokens, features]  saved [batch, heads, tokens, tokens] the softmax
 *     scratch [tokens, tokens] its gradient */
#include <math.h>

#include "errors.h"
#include "exponential.h"
#include "gemm.h"
#include "op.h"

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
        return train_fail(RING_ERR_CONFIG, "%zu features cannot be split among %zu heads", features,
                          heads);
    if (__builtin_mul_overflow(tokens, tokens, &count) ||
        __builtin_mul_overflow(count, heads, &count) || count > INT32_MAX / sizeof(float))
        return train_fail(RING_ERR_CONFIG, "attention of %zu heads over %zu tokens is too large",
                          heads, tokens);
    use->out = (op_shape){.dim = {tokens, features}, .dims = 2};
    use->saved_bytes = count * sizeof(float);
    use->scratch_bytes = tokens * tokens * sizeof(float);
    return RING_OK;
}

/* One head of one sample: where its matrices begin, and how far apart their rows are. */
typedef struct attention_head {
    size_t tokens, size;          /* size: features of the head */
    size_t row_in, row_out;       /* of q, k and v; of out */
    size_t q, k, v, out, softmax; /* elements before them in in, out and saved */
    float scale;
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
                           .scale = (float)(1.0 / sqrt((double)size))};
    head.k = head.q + features;
    head.v = head.k + features;
    return head;
}

/* ---- Fast ---------------------------------------------------------------------------------- */

/* Of the scores of a token and those before it; the later ones get nothing. */
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
        gemm_strided(false, false, h.tokens, h.size, h.tokens, softmax, h.tokens, in + h.v,
                     h.row_in, false, run->out + h.out, h.row_out);
    }
}

/* From the gradient by the softmax's row to that by its scores: p · (d - Σ p d) · scale. */
static void softmax_row_delta(float *restrict delta, const float *restrict softmax, size_t count,
                              float scale)
{
    float sum = 0.0F;
    for (size_t j = 0; j < count; j++)
        sum += softmax[j] * delta[j];
    for (size_t j = 0; j < count; j++)
        delta[j] = softmax[j] * (delta[j] - sum) * scale;
}

static void attention_inputs(const op_run *run)
{
    const float *in = run->in[0];
    float *in_delta = run->in_delta[0], *delta = run->scratch;
    for (size_t n = 0; n < run->batch * run->use->settings.heads; n++) {
        const attention_head h = head_of(run, n);
        const float *softmax = (const float *)(const void *)run->saved + h.softmax;
        const float *out_delta = run->out_delta + h.out;
        gemm_strided(true, false, h.tokens, h.size, h.tokens, softmax, h.tokens, out_delta,
                     h.row_out, false, in_delta + h.v, h.row_in);
        gemm_strided(false, true, h.tokens, h.tokens, h.size, out_delta, h.row_out, in + h.v,
                     h.row_in, false, delta, h.tokens);
        for (size_t i = 0; i < h.tokens; i++)
            softmax_row_delta(delta + i * h.tokens, softmax + i * h.tokens, h.tokens, h.scale);
        gemm_strided(false, false, h.tokens, h.size, h.tokens, delta, h.tokens, in + h.k, h.row_in,
                     false, in_delta + h.q, h.row_in);
        gemm_strided(true, false, h.tokens, h.size, h.tokens, delta, h.tokens, in + h.q, h.row_in,
                     false, in_delta + h.k, h.row_in);
    }
}

/* ---- Reference ----------------------------------------------------------------------------- */

static double dot(const float *a, const float *b, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static void token_forward_reference(const op_run *run, const attention_head *h, size_t i)
{
    const float *in = run->in[0];
    float *softmax = (float *)(void *)run->saved + h->softmax + i * h->tokens;
    double sum = 0.0;
    for (size_t j = 0; j < h->tokens; j++) {
        const double score = dot(in + h->q + i * h->row_in, in + h->k + j * h->row_in, h->size);
        softmax[j] = j <= i ? (float)exp(score / sqrt((double)h->size)) : 0.0F;
        sum += (double)softmax[j];
    }
    for (size_t j = 0; j < h->tokens; j++)
        softmax[j] = (float)((double)softmax[j] / sum);
    for (size_t f = 0; f < h->size; f++) {
        double value = 0.0;
        for (size_t j = 0; j < h->tokens; j++)
            value += (double)softmax[j] * (double)in[h->v + j * h->row_in + f];
        run->out[h->out + i * h->row_out + f] = (float)value;
    }
}

static void attention_forward_reference(const op_run *run)
{
    for (size_t n = 0; n < run->batch * run->use->settings.heads; n++) {
        const attention_head h = head_of(run, n);
        for (size_t i = 0; i < h.tokens; i++)
            token_forward_reference(run, &h, i);
    }
}

/* What token i hands back to itself and the tokens before it. */
static void token_inputs_reference(const op_run *run, const attention_head *h, size_t i)
{
    const float *in = run->in[0], *out_delta = run->out_delta + h->out + i * h->row_out;
    const float *softmax = (const float *)(const void *)run->saved + h->softmax + i * h->tokens;
    float *in_delta = run->in_delta[0];
    double sum = 0.0;
    for (size_t j = 0; j <= i; j++)
        sum += (double)softmax[j] * dot(out_delta, in + h->v + j * h->row_in, h->size);
    for (size_t j = 0; j <= i; j++) {
        const double by_softmax = dot(out_delta, in + h->v + j * h->row_in, h->size);
        const double by_score = (double)softmax[j] * (by_softmax - sum) / sqrt((double)h->size);
        for (size_t f = 0; f < h->size; f++) {
            in_delta[h->v + j * h->row_in + f] += softmax[j] * out_delta[f];
            in_delta[h->q + i * h->row_in + f] += (float)(by_score *
                                                          (double)in[h->k + j * h->row_in + f]);
            in_delta[h->k + j * h->row_in + f] += (float)(by_score *
                                                          (double)in[h->q + i * h->row_in + f]);
        }
    }
}

static void attention_inputs_reference(const op_run *run)
{
    const size_t count = run->batch * shape_count(&run->use->in[0]);
    for (size_t i = 0; i < count; i++)
        run->in_delta[0][i] = 0.0F;
    for (size_t n = 0; n < run->batch * run->use->settings.heads; n++) {
        const attention_head h = head_of(run, n);
        for (size_t i = 0; i < h.tokens; i++)
            token_inputs_reference(run, &h, i);
    }
}

const nn_op op_attention = {
    .name = "attention",
    .inputs = 1,
    .takes = TAKES_HEADS,
    .shape = attention_shape,
    .fast = {attention_forward, NULL, attention_inputs},
    .reference = {attention_forward_reference, NULL, attention_inputs_reference},
};
