/* SPDX-License-Identifier: Apache-2.0
 * Sums in double where that is simple; convolutions visit each window. */
#include "op_references.h"

#include <dropout_mask.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <window.h>

static size_t count_of(const op_run *run)
{
    return run->batch * shape_count(&run->use->out);
}

static size_t rows_of(const op_run *run)
{
    return run->batch * shape_rows(&run->use->in[0]);
}

/* ---- linear ---------------------------------------------------------------------------------- */

static void linear_forward(const op_run *run)
{
    const size_t rows = rows_of(run), inputs = shape_width(&run->use->in[0]);
    const size_t outputs = shape_width(&run->use->out);
    for (size_t i = 0; i < rows; i++) {
        for (size_t o = 0; o < outputs; o++) {
            double sum = run->use->settings.no_bias ? 0.0 : (double)run->params[1][o];
            for (size_t k = 0; k < inputs; k++)
                sum += (double)run->in[0][i * inputs + k] * (double)run->params[0][o * inputs + k];
            run->out[i * outputs + o] = (float)sum;
        }
    }
}

static void linear_params(const op_run *run)
{
    const size_t rows = rows_of(run), inputs = shape_width(&run->use->in[0]);
    const size_t outputs = shape_width(&run->use->out);
    for (size_t o = 0; o < outputs && !run->use->settings.no_bias; o++) {
        double sum = run->add[1] ? (double)run->grads[1][o] : 0.0;
        for (size_t i = 0; i < rows; i++)
            sum += (double)run->out_grad[i * outputs + o];
        run->grads[1][o] = (float)sum;
    }
    for (size_t at = 0; at < outputs * inputs; at++) {
        double sum = run->add[0] ? (double)run->grads[0][at] : 0.0;
        for (size_t i = 0; i < rows; i++)
            sum += (double)run->out_grad[i * outputs + at / inputs] *
                   (double)run->in[0][i * inputs + at % inputs];
        run->grads[0][at] = (float)sum;
    }
}

static void linear_inputs(const op_run *run)
{
    const size_t rows = rows_of(run), inputs = shape_width(&run->use->in[0]);
    const size_t outputs = shape_width(&run->use->out);
    for (size_t at = 0; at < rows * inputs; at++) {
        double sum = 0.0;
        for (size_t o = 0; o < outputs; o++)
            sum += (double)run->out_grad[at / inputs * outputs + o] *
                   (double)run->params[0][o * inputs + at % inputs];
        run->in_grad[0][at] = (float)sum;
    }
}

/* ---- conv2d ---------------------------------------------------------------------------------- */

/* The operands of one window: output channel @p outputs of sample @p i at place (y, x). */
typedef struct conv_place {
    size_t sample, output, y, x;
} conv_place;

/* Calls @p visit with the places of input and weight under each place of the output. */
typedef void conv_visit(const op_run *run, size_t in_at, size_t weight_at, size_t out_at);

static void visit_window(const op_run *run, const op_window *window, conv_place place,
                         size_t out_at, conv_visit *visit)
{
    const size_t kernel = window->kernel, plane = window->rows * window->columns;
    const window_span rows = window_at(window, place.y, window->rows);
    const window_span columns = window_at(window, place.x, window->columns);
    for (size_t c = 0; c < window->channels; c++) {
        for (size_t y = rows.first; y < rows.end; y++) {
            const size_t weight_y = y + window->padding - place.y * window->stride;
            for (size_t x = columns.first; x < columns.end; x++) {
                const size_t weight_x = x + window->padding - place.x * window->stride;
                const size_t weights = place.output * window->channels + c;
                visit(run, (place.sample * window->channels + c) * plane + y * window->columns + x,
                      (weights * kernel + weight_y) * kernel + weight_x, out_at);
            }
        }
    }
}

static void visit_all(const op_run *run, conv_visit *visit)
{
    const op_window window = window_of(run->use);
    const size_t outputs = run->use->out.dim[0], places = window.out_rows * window.out_columns;
    for (size_t at = 0; at < run->batch * outputs * places; at++) {
        const size_t place = at % places;
        visit_window(run, &window,
                     (conv_place){.sample = at / places / outputs,
                                  .output = at / places % outputs,
                                  .y = place / window.out_columns,
                                  .x = place % window.out_columns},
                     at, visit);
    }
}

static void visit_forward(const op_run *run, size_t in_at, size_t weight_at, size_t out_at)
{
    run->out[out_at] += run->in[0][in_at] * run->params[0][weight_at];
}

static void visit_params(const op_run *run, size_t in_at, size_t weight_at, size_t out_at)
{
    run->grads[0][weight_at] += run->in[0][in_at] * run->out_grad[out_at];
}

static void visit_inputs(const op_run *run, size_t in_at, size_t weight_at, size_t out_at)
{
    run->in_grad[0][in_at] += run->params[0][weight_at] * run->out_grad[out_at];
}

static void conv2d_forward(const op_run *run)
{
    const size_t outputs = run->use->out.dim[0], count = shape_count(&run->use->out);
    for (size_t at = 0; at < run->batch * count; at++)
        run->out[at] = run->params[1][at / (count / outputs) % outputs];
    visit_all(run, visit_forward);
}

static void conv2d_params(const op_run *run)
{
    const op_tensor *weight = &run->use->tensors[0];
    const size_t outputs = run->use->out.dim[0], count = shape_count(&run->use->out);
    for (size_t o = 0; o < outputs; o++)
        run->grads[1][o] = run->add[1] ? run->grads[1][o] : 0.0F;
    for (size_t at = 0; at < run->batch * count; at++)
        run->grads[1][at / (count / outputs) % outputs] += run->out_grad[at];
    if (!run->add[0])
        memset(run->grads[0], 0, weight->shape[0] * weight->fan_in * sizeof(float));
    visit_all(run, visit_params);
}

static void conv2d_inputs(const op_run *run)
{
    memset(run->in_grad[0], 0, run->batch * shape_count(&run->use->in[0]) * sizeof(float));
    visit_all(run, visit_inputs);
}

/* ---- max_pool2d ------------------------------------------------------------------------------ */

/* The first maximum of a window, or the last NaN. */
static uint32_t find_maximum(const op_window *window, const float *plane, size_t place)
{
    const window_span y = window_at(window, place / window->out_columns, window->rows);
    const window_span x = window_at(window, place % window->out_columns, window->columns);
    size_t best = y.first * window->columns + x.first;
    for (size_t i = 0; i < (y.end - y.first) * (x.end - x.first); i++) {
        const size_t row = y.first + i / (x.end - x.first);
        const size_t at = row * window->columns + x.first + i % (x.end - x.first);
        if (plane[at] > plane[best] || isnan(plane[at]))
            best = at;
    }
    return (uint32_t)best;
}

static void max_pool2d_forward(const op_run *run)
{
    const op_window window = window_of(run->use);
    const size_t places = window.out_rows * window.out_columns;
    uint32_t *saved = (void *)run->saved;
    for (size_t i = 0; i < count_of(run); i++) {
        const float *plane = run->in[0] + i / places * window.rows * window.columns;
        saved[i] = find_maximum(&window, plane, i % places);
        run->out[i] = plane[saved[i]];
    }
}

static void max_pool2d_inputs(const op_run *run)
{
    const op_window window = window_of(run->use);
    const size_t places = window.out_rows * window.out_columns;
    const uint32_t *saved = (const void *)run->saved;
    memset(run->in_grad[0], 0, run->batch * shape_count(&run->use->in[0]) * sizeof(float));
    for (size_t i = 0; i < count_of(run); i++)
        run->in_grad[0][i / places * window.rows * window.columns + saved[i]] += run->out_grad[i];
}

/* ---- relu and gelu --------------------------------------------------------------------------- */

static void relu_forward(const op_run *run)
{
    const size_t count = run->batch * shape_count(&run->use->out);
    for (size_t i = 0; i < count; i++)
        run->out[i] = run->in[0][i] < 0.0F ? 0.0F : run->in[0][i];
}

static void relu_inputs(const op_run *run)
{
    const size_t count = run->batch * shape_count(&run->use->out);
    for (size_t i = 0; i < count; i++)
        run->in_grad[0][i] = run->out[i] > 0.0F ? run->out_grad[i] : 0.0F;
}

#define ROOT_2_OVER_PI 0.79788456080286535588
#define CUBE 0.044715

/* The share of x that passes, and its derivative. */
static double share_of(const op_use *use, double x, double *slope)
{
    if (use->settings.by_tanh) {
        const double at = tanh(ROOT_2_OVER_PI * (x + CUBE * x * x * x));
        *slope = 0.5 * (1.0 - at * at) * ROOT_2_OVER_PI * (1.0 + 3.0 * CUBE * x * x);
        return 0.5 * (1.0 + at);
    }
    *slope = exp(-0.5 * x * x) * 0.5 * M_SQRT1_2 * M_2_SQRTPI;
    return 0.5 * erfc(-x * M_SQRT1_2);
}

static void gelu_forward(const op_run *run)
{
    double slope;
    for (size_t i = 0; i < count_of(run); i++) {
        const double x = (double)run->in[0][i];
        run->out[i] = (float)(x * share_of(run->use, x, &slope));
    }
}

static void gelu_inputs(const op_run *run)
{
    for (size_t i = 0; i < count_of(run); i++) {
        double slope;
        const double x = (double)run->in[0][i], share = share_of(run->use, x, &slope);
        run->in_grad[0][i] = (float)((double)run->out_grad[i] * (share + x * slope));
    }
}

/* ---- layer_norm ------------------------------------------------------------------------------ */

/* Mean and 1 / √(variance + …) of one row. */
static void measure(const float *in, size_t features, double *mean, double *factor)
{
    double sum = 0.0, squares = 0.0;
    for (size_t j = 0; j < features; j++)
        sum += (double)in[j];
    *mean = sum / (double)features;
    for (size_t j = 0; j < features; j++)
        squares += ((double)in[j] - *mean) * ((double)in[j] - *mean);
    *factor = 1.0 / sqrt(squares / (double)features + 1e-5);
}

static void layer_norm_forward(const op_run *run)
{
    const size_t features = shape_width(&run->use->in[0]);
    for (size_t i = 0; i < rows_of(run); i++) {
        double mean, factor;
        const float *in = run->in[0] + i * features;
        measure(in, features, &mean, &factor);
        for (size_t j = 0; j < features; j++)
            run->out[i * features + j] = (float)(((double)in[j] - mean) * factor *
                                                     (double)run->params[0][j] +
                                                 (double)run->params[1][j]);
    }
}

static void layer_norm_params(const op_run *run)
{
    const size_t features = shape_width(&run->use->in[0]);
    for (size_t j = 0; j < features; j++) {
        double weight = run->add[0] ? (double)run->grads[0][j] : 0.0;
        double bias = run->add[1] ? (double)run->grads[1][j] : 0.0;
        for (size_t i = 0; i < rows_of(run); i++) {
            double mean, factor;
            const double out_grad = (double)run->out_grad[i * features + j];
            measure(run->in[0] + i * features, features, &mean, &factor);
            weight += out_grad * ((double)run->in[0][i * features + j] - mean) * factor;
            bias += out_grad;
        }
        run->grads[0][j] = (float)weight;
        run->grads[1][j] = (float)bias;
    }
}

static void layer_norm_inputs(const op_run *run)
{
    const size_t features = shape_width(&run->use->in[0]);
    const float *weight = run->params[0];
    for (size_t i = 0; i < rows_of(run); i++) {
        const float *in = run->in[0] + i * features, *out_grad = run->out_grad + i * features;
        double mean, factor, level = 0.0, slope = 0.0;
        measure(in, features, &mean, &factor);
        for (size_t j = 0; j < features; j++) {
            const double d = (double)out_grad[j] * (double)weight[j] / (double)features;
            level += d;
            slope += d * ((double)in[j] - mean) * factor;
        }
        for (size_t j = 0; j < features; j++)
            run->in_grad[0][i * features + j] =
                (float)(factor * ((double)out_grad[j] * (double)weight[j] - level -
                                  ((double)in[j] - mean) * factor * slope));
    }
}

/* ---- attention ------------------------------------------------------------------------------- */

/* One head of one sample: where its matrices begin, and how far apart their rows are. */
typedef struct attention_head {
    size_t tokens, size;          /* size: features of the head */
    size_t row_in, row_out;       /* of q, k and v; of out */
    size_t q, k, v, out, softmax; /* elements before them in in, out and saved */
    size_t sample, place;         /* place: of its first weight among those of all tensor ranks */
} attention_head;

static attention_head head_of(const op_run *run, size_t number)
{
    const op_use *use = run->use;
    const size_t tokens = use->out.dim[0], features = use->out.dim[1], heads = use->settings.heads;
    const size_t sample = number / heads, size = features / heads, head = number % heads;
    const size_t q = sample * tokens * 3 * features + head * size;
    return (attention_head){.tokens = tokens,
                            .size = size,
                            .row_in = 3 * features,
                            .row_out = features,
                            .q = q,
                            .k = q + features,
                            .v = q + 2 * features,
                            .out = sample * tokens * features + head * size,
                            .softmax = number * tokens * tokens,
                            .sample = sample,
                            .place = (use->settings.row_first / size + head) * tokens * tokens};
}

static bool drops(const op_run *run)
{
    return run->training && run->use->settings.probability > 0.0;
}

/* Marks weights of the softmax that are dropped by their sign, one by one. */
static void drop_weights(const op_run *run, const attention_head *h, size_t i, float *row)
{
    for (size_t j = 0; j <= i; j++) {
        uint8_t keep;
        const size_t place = h->place + i * h->tokens + j;
        dropout_mask_draw(run, h->sample, place, place + 1, &keep);
        row[j] = keep ? row[j] : -row[j];
    }
}

static float kept(float softmax, float value, float scale)
{
    return signbit(softmax) ? 0.0F : value * scale;
}

static double dot(const float *a, const float *b, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static void token_forward(const op_run *run, const attention_head *h, size_t i)
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
    const float scale = drops(run) ? dropout_mask_scale(run->use) : 1.0F;
    if (drops(run))
        drop_weights(run, h, i, softmax);
    for (size_t f = 0; f < h->size; f++) {
        double value = 0.0;
        for (size_t j = 0; j < h->tokens; j++)
            value += (double)kept(softmax[j], softmax[j], scale) *
                     (double)in[h->v + j * h->row_in + f];
        run->out[h->out + i * h->row_out + f] = (float)value;
    }
}

static void attention_forward(const op_run *run)
{
    for (size_t n = 0; n < run->batch * run->use->settings.heads; n++) {
        const attention_head h = head_of(run, n);
        for (size_t i = 0; i < h.tokens; i++)
            token_forward(run, &h, i);
    }
}

/* The gradient of the loss by the softmax of token i at token j. */
static double by_softmax(const op_run *run, const attention_head *h, size_t i, size_t j)
{
    const float *softmax = (const float *)(const void *)run->saved + h->softmax + i * h->tokens;
    const float scale = drops(run) ? dropout_mask_scale(run->use) : 1.0F;
    if (signbit(softmax[j]))
        return 0.0;
    return (double)scale *
           dot(run->out_grad + h->out + i * h->row_out, run->in[0] + h->v + j * h->row_in, h->size);
}

/* Gradients from token i for itself and the tokens before it. */
static void token_inputs(const op_run *run, const attention_head *h, size_t i)
{
    const float *in = run->in[0], *out_grad = run->out_grad + h->out + i * h->row_out;
    const float *softmax = (const float *)(const void *)run->saved + h->softmax + i * h->tokens;
    const float scale = drops(run) ? dropout_mask_scale(run->use) : 1.0F;
    float *in_grad = run->in_grad[0];
    double sum = 0.0;
    for (size_t j = 0; j <= i; j++)
        sum += (double)fabsf(softmax[j]) * by_softmax(run, h, i, j);
    for (size_t j = 0; j <= i; j++) {
        const double by_score = (double)fabsf(softmax[j]) * (by_softmax(run, h, i, j) - sum) /
                                sqrt((double)h->size);
        const float weight = kept(softmax[j], softmax[j], scale);
        for (size_t f = 0; f < h->size; f++) {
            in_grad[h->v + j * h->row_in + f] += weight * out_grad[f];
            in_grad[h->q + i * h->row_in + f] += (float)(by_score *
                                                         (double)in[h->k + j * h->row_in + f]);
            in_grad[h->k + j * h->row_in + f] += (float)(by_score *
                                                         (double)in[h->q + i * h->row_in + f]);
        }
    }
}

static void attention_inputs(const op_run *run)
{
    const size_t count = run->batch * shape_count(&run->use->in[0]);
    for (size_t i = 0; i < count; i++)
        run->in_grad[0][i] = 0.0F;
    for (size_t n = 0; n < run->batch * run->use->settings.heads; n++) {
        const attention_head h = head_of(run, n);
        for (size_t i = 0; i < h.tokens; i++)
            token_inputs(run, &h, i);
    }
}

/* ---- The table ----------------------------------------------------------------------------- */

op_functions op_reference(const nn_op *op)
{
    static const struct {
        const nn_op *op;
        op_functions functions;
    } rows[] = {
        {&op_linear, {linear_forward, linear_params, linear_inputs}},
        {&op_conv2d, {conv2d_forward, conv2d_params, conv2d_inputs}},
        {&op_max_pool2d, {max_pool2d_forward, NULL, max_pool2d_inputs}},
        {&op_relu, {relu_forward, NULL, relu_inputs}},
        {&op_gelu, {gelu_forward, NULL, gelu_inputs}},
        {&op_layer_norm, {layer_norm_forward, layer_norm_params, layer_norm_inputs}},
        {&op_attention, {attention_forward, NULL, attention_inputs}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].op == op)
            return rows[i].functions;
    }
    return op->fast;
}
