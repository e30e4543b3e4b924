/* SPDX-License-Identifier: Apache-2.0
 * optimizer: performs the steps of SGD, Adam, AdamW, Lion and Adagrad on float32 parameters with
 * gradients of float32, float16 or bfloat16. On request it also stores the new parameters as
 * float16 or bfloat16. Host reference: kernel_sgd_step() and the other steps; with float32
 * gradients the results have the same bits, except those of NaNs. Traffic per element: the gradient
 * once, the parameter and each moment twice, the rounded parameter once. Launch:
 * cuda_tiles(count, CAST_GROUP, CUDA_BLOCK) blocks of CUDA_BLOCK threads. */
#include "half_casts.h"

#include <math.h>

/* ---- One element: operations in the order of kernels/host/optimizer_kernels.h ---------------- */

struct sgd_rule {
    enum : unsigned { M = 0, V = 0 }; /* 1 if the rule has that moment */

    DEVICE void step(const sgd_factors &f, float grad, float &p, float &, float &)
    {
        float g = f.scale * grad;
        if (f.weight_decay != 0)
            g += f.weight_decay * p;
        p -= f.lr * g;
    }
};

struct momentum_rule {
    enum : unsigned { M = 1, V = 0 };

    DEVICE void step(const sgd_factors &f, float grad, float &p, float &m, float &)
    {
        float g = f.scale * grad;
        if (f.weight_decay != 0)
            g += f.weight_decay * p;
        const float moved = f.momentum * m + f.blend * g;
        m = f.first ? g : moved;
        p -= f.lr * (f.nesterov ? g + f.momentum * m : m);
    }
};

struct adam_rule {
    enum : unsigned { M = 1, V = 1 };

    DEVICE void step(const adam_factors &f, float grad, float &p, float &m, float &v)
    {
        float g = f.scale * grad;
        if (f.weight_decay != 0)
            g += f.weight_decay * p;
        m += f.blend1 * (g - m);
        v = f.beta2 * v + f.blend2 * g * g;
        p = f.keep * p - f.rate * m / (sqrtf(v) / f.root + f.eps);
    }
};

struct lion_rule {
    enum : unsigned { M = 1, V = 0 };

    DEVICE void step(const lion_factors &f, float grad, float &p, float &m, float &)
    {
        const float g = f.scale * grad, way = f.beta1 * m + f.blend1 * g;
        const float sign = (way > 0 ? 1.0F : 0.0F) - (way < 0 ? 1.0F : 0.0F);
        p = f.keep * p - f.lr * sign;
        m = f.beta2 * m + f.blend2 * g;
    }
};

struct adagrad_rule {
    enum : unsigned { M = 0, V = 1 };

    DEVICE void step(const adagrad_factors &f, float grad, float &p, float &, float &v)
    {
        float g = f.scale * grad;
        if (f.weight_decay != 0)
            g += f.weight_decay * p;
        v += g * g;
        p -= f.rate * g / (sqrtf(v) + f.eps);
    }
};

/* ---- Arrays: p, m, v, p_rounded (count) from p, m, v, grad (count) ----------------------------
 */

DEVICE bool may_group_rounded(const cuda_step_arrays &a, uint64_t lead)
{
    return a.rounded == CUDA_ROUNDED_NONE || cast_may_group<cast_f16>(a.p_rounded, lead);
}

template <unsigned N>
DEVICE void store_rounded(const cuda_step_arrays &a, uint64_t i, const float *p)
{
    if (a.rounded == CUDA_ROUNDED_F16)
        cast_store<cast_f16, N>(a.p_rounded, i, p);
    else if (a.rounded == CUDA_ROUNDED_BF16)
        cast_store<cast_bf16, N>(a.p_rounded, i, p);
}

/* Arguments whose factors are those of the update, if there is one. */
template <class Args> struct late_step {
    const cuda_step_arrays &arrays;
    decltype(Args::by) by;
};

template <class Args> DEVICE late_step<Args> late_step_of(const Args &args)
{
    typedef decltype(Args::by) factors;
    static_assert(sizeof(factors) <= CUDA_FACTORS_BYTES, "they have room");
    const cuda_step_arrays &arrays = args.arrays;
    late_step<Args> late = {arrays, args.by};
    if (arrays.update == nullptr)
        return late;
    const char *all = (const char *)(arrays.update + 1);
    if (arrays.slot != CUDA_OWN_FACTORS)
        late.by = *(const factors *)(all + (uint64_t)arrays.slot * CUDA_FACTORS_BYTES);
    late.by.scale *= (float)arrays.update->clip;
    return late;
}

template <class Rule, class Grad> struct step_body {
    template <unsigned N, unsigned W, class Args>
    DEVICE void at(const Args &args, uint64_t i, uint64_t stride)
    {
        const cuda_step_arrays &a = args.arrays;
        float p[W][N], g[W][N], m[W][N], v[W][N];
        UNROLL
        for (unsigned w = 0; w < W; w++) {
            cast_load<Grad, N>(g[w], a.grad, i + w * stride);
            cast_load<cast_f32, N>(p[w], a.p, i + w * stride);
            if (Rule::M)
                cast_load<cast_f32, N>(m[w], a.m, i + w * stride);
            if (Rule::V)
                cast_load<cast_f32, N>(v[w], a.v, i + w * stride);
        }
        UNROLL
        for (unsigned w = 0; w < W; w++) {
            UNROLL
            for (unsigned k = 0; k < N; k++)
                Rule::step(args.by, g[w][k], p[w][k], m[w][k], v[w][k]);
            cast_store<cast_f32, N>(a.p, i + w * stride, p[w]);
            if (Rule::M)
                cast_store<cast_f32, N>(a.m, i + w * stride, m[w]);
            if (Rule::V)
                cast_store<cast_f32, N>(a.v, i + w * stride, v[w]);
            store_rounded<N>(a, i + w * stride, p[w]);
        }
    }
};

template <class Rule, class Grad, class Args> DEVICE void step_arrays(const Args &args)
{
    typedef step_body<Rule, Grad> body;
    const cuda_step_arrays &a = args.arrays;
    const uint64_t lead = lead_to(a.p, sizeof(float), 16);
    const bool groups = cast_may_group<cast_f32>(a.p, lead) && cast_may_group<Grad>(a.grad, lead) &&
                        (!Rule::M || cast_may_group<cast_f32>(a.m, lead)) &&
                        (!Rule::V || cast_may_group<cast_f32>(a.v, lead)) &&
                        may_group_rounded(a, lead);
    if (a.update != nullptr && a.update->skips)
        return;
    const late_step<Args> late = late_step_of(args);
    if (groups)
        by_tiles::groups<body, CAST_GROUP, 1>(late, a.count, lead);
    else
        by_tiles::elements<body, CAST_GROUP, 2>(late, a.count);
}

#define STEP(rule, args_type, grad) \
    KERNEL_BOUND(rule##_##grad, args_type, CUDA_BLOCK, 4) \
    { \
        step_arrays<rule##_rule, cast_##grad>(args); \
    }
#define ROW(grad) \
    STEP(sgd, cuda_sgd_args, grad) \
    STEP(momentum, cuda_sgd_args, grad) \
    STEP(adam, cuda_adam_args, grad) \
    STEP(lion, cuda_lion_args, grad) \
    STEP(adagrad, cuda_adagrad_args, grad)
ROW(f32)
ROW(f16)
ROW(bf16)
