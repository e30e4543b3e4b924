/* SPDX-License-Identifier: Apache-2.0
 * layer_norm: normalizes each row on its own, as torch.nn.LayerNorm does:
 * out = (in - mean) / √(variance + 1e-5) · weight + bias.
 *     in, out [rows, features]  weight, bias [features]
 *     saved [rows, 2] mean and 1 / √(variance + 1e-5) of each row */
#include <math.h>
#include <string.h>

#include "op.h"

/* Sums are computed in lanes, so that the compiler can vectorize them without changing the order of
 * the additions. */
enum { LANES = 16 };
static const double smallest_variance = 1e-5;

static ring_status layer_norm_shape(op_use *use)
{
    const size_t features = shape_width(&use->in[0]);
    use->out = use->in[0];
    use->tensors[0] = (op_tensor){.name = "weight",
                                  .shape = {features},
                                  .dims = 1,
                                  .group = GROUP_NO_DECAY,
                                  .start = START_ONES};
    use->tensors[1] = (op_tensor){.name = "bias",
                                  .shape = {features},
                                  .dims = 1,
                                  .group = GROUP_NO_DECAY,
                                  .start = START_ZEROS};
    use->tensor_count = 2;
    use->saved_bytes = shape_rows(&use->in[0]) * 2 * sizeof(float);
    return RING_OK;
}

static size_t rows_of(const op_run *run)
{
    return run->batch * shape_rows(&run->use->in[0]);
}

/* ---- Fast ---------------------------------------------------------------------------------- */

static float add_lanes(const float *lane)
{
    float sum = 0.0F;
    for (size_t l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

static float sum_of(const float *x, size_t count)
{
    float lane[LANES] = {0};
    const size_t whole = count - count % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lane[l] += x[i + l];
    for (size_t i = whole; i < count; i++)
        lane[i - whole] += x[i];
    return add_lanes(lane);
}

/* @return Σ (x - mean)² */
static float sum_of_squares(const float *x, float mean, size_t count)
{
    float lane[LANES] = {0};
    const size_t whole = count - count % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lane[l] += (x[i + l] - mean) * (x[i + l] - mean);
    for (size_t i = whole; i < count; i++)
        lane[i - whole] += (x[i] - mean) * (x[i] - mean);
    return add_lanes(lane);
}

static void layer_norm_forward(const op_run *run)
{
    const size_t features = shape_width(&run->use->in[0]);
    const float *weight = run->params[0], *bias = run->params[1];
    float *saved = (void *)run->saved;
    for (size_t i = 0; i < rows_of(run); i++) {
        const float *in = run->in[0] + i * features;
        float *restrict out = run->out + i * features;
        const float mean = sum_of(in, features) / (float)features;
        const float variance = sum_of_squares(in, mean, features) / (float)features;
        const float factor = 1.0F / sqrtf(variance + (float)smallest_variance);
        for (size_t j = 0; j < features; j++)
            out[j] = (in[j] - mean) * factor * weight[j] + bias[j];
        saved[2 * i] = mean;
        saved[2 * i + 1] = factor;
    }
}

/* weight_grad (features) = sum over rows of out_grad · (in - mean) · factor,
 * bias_grad (features) = sum over rows of out_grad */
static void layer_norm_params(const op_run *run)
{
    const size_t features = shape_width(&run->use->in[0]);
    const float *saved = (const void *)run->saved;
    float *restrict weight = run->grads[0], *restrict bias = run->grads[1];
    if (!run->add[0])
        memset(weight, 0, features * sizeof(float));
    if (!run->add[1])
        memset(bias, 0, features * sizeof(float));
    for (size_t i = 0; i < rows_of(run); i++) {
        const float *in = run->in[0] + i * features, *out_grad = run->out_grad + i * features;
        const float mean = saved[2 * i], factor = saved[2 * i + 1];
        for (size_t j = 0; j < features; j++) {
            weight[j] += out_grad[j] * (in[j] - mean) * factor;
            bias[j] += out_grad[j];
        }
    }
}

/* For each row (features), with x = (in - mean) · factor and d = out_grad · weight:
 * in_grad = factor · (d - mean(d) - x · mean(d · x)) */
static void layer_norm_inputs(const op_run *run)
{
    const size_t features = shape_width(&run->use->in[0]), whole = features - features % LANES;
    const float *saved = (const void *)run->saved, *weight = run->params[0];
    for (size_t i = 0; i < rows_of(run); i++) {
        const float *in = run->in[0] + i * features, *out_grad = run->out_grad + i * features;
        float *restrict in_grad = run->in_grad[0] + i * features;
        const float mean = saved[2 * i], factor = saved[2 * i + 1];
        float plain[LANES] = {0}, along[LANES] = {0};
        for (size_t j = 0; j < features; j++)
            in_grad[j] = out_grad[j] * weight[j];
        for (size_t j = 0; j < features; j += LANES) {
            const size_t lanes = j < whole ? (size_t)LANES : features - whole;
            for (size_t l = 0; l < lanes; l++) {
                plain[l] += in_grad[j + l];
                along[l] += in_grad[j + l] * ((in[j + l] - mean) * factor);
            }
        }
        const float level = add_lanes(plain) / (float)features;
        const float slope = add_lanes(along) / (float)features * factor;
        for (size_t j = 0; j < features; j++)
            in_grad[j] = factor * (in_grad[j] - level - (in[j] - mean) * slope);
    }
}

const nn_op op_layer_norm = {
    .name = "layer_norm",
    .inputs = 1,
    .shape = layer_norm_shape,
    .fast = {layer_norm_forward, layer_norm_params, layer_norm_inputs},
};
