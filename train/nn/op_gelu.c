/* SPDX-License-Identifier: Apache-2.0
 * gelu: computes out = in · Φ(in), as torch.nn.GELU does. Φ is the normal distribution function or,
 * with by_tanh, its approximation Φ(x) ≈ ½ (1 + tanh(√(2/π) (x + 0.044715 x³))).
 *     in, out [batch, any] */
#include <math.h>

#include "exponential.h"
#include "op.h"

#define ROOT_2_OVER_PI 0.79788456080286535588
#define CUBE 0.044715

static ring_status gelu_shape(op_use *use)
{
    use->out = use->in[0];
    return RING_OK;
}

static size_t count_of(const op_run *run)
{
    return run->batch * shape_count(&run->use->out);
}

/* ---- Fast ---------------------------------------------------------------------------------- */

/* @return Φ(x) within 1e-7, given bell = e^(-x²/2); formula 7.1.26 of Abramowitz and Stegun. */
static inline float normal(float x, float bell)
{
    const float z = fabsf(x) * 0.70710678F, t = 1.0F / (1.0F + 0.3275911F * z);
    float series = 1.061405429F;
    series = series * t - 1.453152027F;
    series = series * t + 1.421413741F;
    series = series * t - 0.284496736F;
    series = series * t + 0.254829592F;
    const float tail = 0.5F * series * t * bell;
    return x > 0.0F ? 1.0F - tail : tail;
}

static inline float bell_of(float x)
{
    return exponential(-0.5F * x * x);
}

/* ½ (1 + tanh(u)) = 1 / (1 + e^(-2u)) */
static inline float half_tanh(float x)
{
    const float u = (float)ROOT_2_OVER_PI * (x + (float)CUBE * x * x * x);
    return 1.0F / (1.0F + exponential(-2.0F * u));
}

static void gelu_forward(const op_run *run)
{
    const size_t count = count_of(run);
    const float *restrict in = run->in[0];
    float *restrict out = run->out;
    if (run->use->settings.by_tanh) {
        for (size_t i = 0; i < count; i++)
            out[i] = in[i] * half_tanh(in[i]);
        return;
    }
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] * normal(in[i], bell_of(in[i]));
}

/* in_grad = out_grad · (Φ(x) + x Φ'(x)), where Φ'(x) = e^(-x²/2) / √(2π). For the approximation
 * share(x) = ½ (1 + tanh(u)), the derivative is share' = 2 share (1 - share) u'. */
static void gelu_inputs(const op_run *run)
{
    const size_t count = count_of(run);
    const float *restrict in = run->in[0], *restrict out_grad = run->out_grad;
    float *restrict in_grad = run->in_grad[0];
    if (run->use->settings.by_tanh) {
        for (size_t i = 0; i < count; i++) {
            const float x = in[i], share = half_tanh(x);
            const float slope = (float)ROOT_2_OVER_PI * (1.0F + 3.0F * (float)CUBE * x * x);
            in_grad[i] = out_grad[i] * (share + 2.0F * x * share * (1.0F - share) * slope);
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const float x = in[i], bell = bell_of(x);
        in_grad[i] = out_grad[i] * (normal(x, bell) + x * 0.39894228F * bell);
    }
}

const nn_op op_gelu = {
    .name = "gelu",
    .inputs = 1,
    .takes = TAKES_APPROXIMATE,
    .shape = gelu_shape,
    .fast = {gelu_forward, NULL, gelu_inputs},
};
