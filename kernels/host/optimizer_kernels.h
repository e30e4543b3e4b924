/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the optimiser steps of one level. Each makes one pass over its arrays of `count`
 * elements, and rounds after every operation, in PyTorch's order. The compiler vectorizes the plain
 * loops. kernels.h has the formulas. */

/* The number of partial sums: enough that additions need not wait for each other. */
enum { SQUARE_SUMS = 32 };

/* Partial sum l adds the squares of the elements l, l + 32, l + 64, …; then the partial sums are
 * added pairwise. This order determines the result, so it is the same in all levels. */
static double sum_squares(const float *x, size_t count)
{
    double sums[SQUARE_SUMS] = {0};
    const size_t whole = count - count % SQUARE_SUMS;
    for (size_t i = 0; i < whole; i += SQUARE_SUMS)
        for (size_t l = 0; l < SQUARE_SUMS; l++)
            sums[l] += (double)x[i + l] * (double)x[i + l];
    for (size_t i = whole; i < count; i++)
        sums[i - whole] += (double)x[i] * (double)x[i];
    for (size_t half = SQUARE_SUMS / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            sums[l] += sums[l + half];
    return sums[0];
}

static void sgd_step(float *restrict p, const float *restrict grad, size_t count,
                     const sgd_factors *by)
{
    const sgd_factors f = *by;
    for (size_t i = 0; i < count; i++) {
        float g = f.scale * grad[i];
        if (f.weight_decay != 0)
            g += f.weight_decay * p[i];
        p[i] -= f.lr * g;
    }
}

static void momentum_step(float *restrict p, const float *restrict grad, float *restrict buf,
                          size_t count, const sgd_factors *by)
{
    const sgd_factors f = *by;
    for (size_t i = 0; i < count; i++) {
        float g = f.scale * grad[i];
        if (f.weight_decay != 0)
            g += f.weight_decay * p[i];
        const float moved = f.momentum * buf[i] + f.blend * g;
        buf[i] = f.first ? g : moved;
        p[i] -= f.lr * (f.nesterov ? g + f.momentum * buf[i] : buf[i]);
    }
}

static void adam_step(float *restrict p, const float *restrict grad, float *restrict m,
                      float *restrict v, size_t count, const adam_factors *by)
{
    const adam_factors f = *by;
    for (size_t i = 0; i < count; i++) {
        float g = f.scale * grad[i];
        if (f.weight_decay != 0)
            g += f.weight_decay * p[i];
        m[i] += f.blend1 * (g - m[i]);
        v[i] = f.beta2 * v[i] + f.blend2 * g * g;
        p[i] = f.keep * p[i] - f.rate * m[i] / (sqrtf(v[i]) / f.root + f.eps);
    }
}

static void lion_step(float *restrict p, const float *restrict grad, float *restrict m,
                      size_t count, const lion_factors *by)
{
    const lion_factors f = *by;
    for (size_t i = 0; i < count; i++) {
        const float g = f.scale * grad[i], direction = f.beta1 * m[i] + f.blend1 * g;
        const float sign = (direction > 0 ? 1.0F : 0.0F) - (direction < 0 ? 1.0F : 0.0F);
        p[i] = f.keep * p[i] - f.lr * sign;
        m[i] = f.beta2 * m[i] + f.blend2 * g;
    }
}

static void adagrad_step(float *restrict p, const float *restrict grad, float *restrict sum,
                         size_t count, const adagrad_factors *by)
{
    const adagrad_factors f = *by;
    for (size_t i = 0; i < count; i++) {
        float g = f.scale * grad[i];
        if (f.weight_decay != 0)
            g += f.weight_decay * p[i];
        sum[i] += g * g;
        p[i] -= f.rate * g / (sqrtf(sum[i]) + f.eps);
    }
}
