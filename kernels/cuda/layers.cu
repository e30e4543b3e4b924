/* SPDX-License-Identifier: Apache-2.0
 * layers: computes the layers and the loss of a network in float32, forward and backward, except
 * for matrix products. layer_args.h states each kernel's result, order of additions and launch.
 * Host references: the ops in train/nn and kernels/host/layer_kernels.h. Results have the same
 * bits, except those of tanh, the losses and sum_rows. Each array is read or written once, but
 * windows that overlap read their elements several times. */
#include "half_casts.h"
#include "layer_args.h"

#include <math.h>

/* @return this thread's number in the grid. */
DEVICE uint64_t worker(void)
{
    return (uint64_t)block_index() * thread_count() + thread_index();
}

/* ---- Elements ------------------------------------------------------------------------------ */

struct relu_rule {
    enum : unsigned { B = 0, OUT = 0 }; /* 1 if the rule reads that array */

    DEVICE float of(float a, float, float)
    {
        return a < 0.0F ? 0.0F : a;
    }
};

struct relu_gradient_rule {
    enum : unsigned { B = 1, OUT = 0 };

    DEVICE float of(float a, float b, float)
    {
        return b > 0.0F ? a : 0.0F;
    }
};

struct tanh_rule {
    enum : unsigned { B = 0, OUT = 0 };

    DEVICE float of(float a, float, float)
    {
        return tanhf(a);
    }
};

struct tanh_gradient_rule {
    enum : unsigned { B = 1, OUT = 0 };

    DEVICE float of(float a, float b, float)
    {
        return a * (1.0F - b * b);
    }
};

struct add_rule {
    enum : unsigned { B = 0, OUT = 1 };

    DEVICE float of(float a, float, float out)
    {
        return out + a;
    }
};

template <class Rule> struct map_body {
    template <unsigned N, unsigned W>
    DEVICE void at(const cuda_map_args &args, uint64_t i, uint64_t stride)
    {
        float a[W][N], b[W][N], out[W][N];
        UNROLL
        for (unsigned w = 0; w < W; w++) {
            cast_load<cast_f32, N>(a[w], args.a, i + w * stride);
            if (Rule::B)
                cast_load<cast_f32, N>(b[w], args.b, i + w * stride);
            if (Rule::OUT)
                cast_load<cast_f32, N>(out[w], args.out, i + w * stride);
        }
        UNROLL
        for (unsigned w = 0; w < W; w++) {
            UNROLL
            for (unsigned k = 0; k < N; k++)
                out[w][k] = Rule::of(a[w][k], Rule::B ? b[w][k] : 0, Rule::OUT ? out[w][k] : 0);
            cast_store<cast_f32, N>(args.out, i + w * stride, out[w]);
        }
    }
};

template <class Rule> DEVICE void map(const cuda_map_args &args)
{
    const uint64_t lead = lead_to(args.out, sizeof(float), 16);
    if (cast_may_group<cast_f32>(args.out, lead) && cast_may_group<cast_f32>(args.a, lead) &&
        (!Rule::B || cast_may_group<cast_f32>(args.b, lead)))
        by_tiles::groups<map_body<Rule>, CAST_GROUP, 1>(args, args.count, lead);
    else
        by_tiles::elements<map_body<Rule>, CAST_GROUP, 2>(args, args.count);
}

#define ROW(name) \
    KERNEL_BOUND(map_##name, cuda_map_args, CUDA_BLOCK, 4) \
    { \
        map<name##_rule>(args); \
    }
CUDA_MAPS(ROW)
#undef ROW

/* ---- Rows ---------------------------------------------------------------------------------- */

KERNEL_BOUND(add_to_rows, cuda_rows_args, CUDA_BLOCK, 4)
{
    const uint64_t width = (uint64_t)args.channels * args.places;
    for (uint64_t i = worker(); i < args.count * width;
         i += (uint64_t)block_count() * thread_count()) {
        const float sum = args.rows[i] + args.row[i % width / args.places];
        args.rows[i] = args.relu ? relu_rule::of(sum, 0, 0) : sum;
    }
}

/* A block has CUDA_SUM_COLUMNS columns; each of its threads adds up a part of a column's rows. */
DEVICE void sum_columns(const cuda_rows_args &args)
{
    SHARED float sums[CUDA_BLOCK];
    const unsigned t = thread_index(), part = t / CUDA_SUM_COLUMNS;
    const uint64_t c = (uint64_t)block_index() * CUDA_SUM_COLUMNS + t % CUDA_SUM_COLUMNS;
    float sum = 0.0F;
    for (uint64_t i = part; i < args.count && c < args.channels; i += CUDA_SUM_PARTS)
        sum += args.rows[i * args.channels + c];
    sums[t] = sum;
    block_barrier();
    if (part > 0 || c >= args.channels)
        return;
    for (unsigned p = 1; p < CUDA_SUM_PARTS; p++)
        sum += sums[t + p * CUDA_SUM_COLUMNS];
    args.row[c] = args.adds ? args.row[c] + sum : sum;
}

/* A block has one channel. */
DEVICE void sum_channel(const cuda_rows_args &args)
{
    const uint64_t c = block_index(), width = (uint64_t)args.channels * args.places;
    float mine = 0.0F;
    for (uint64_t e = thread_index(); e < args.count * args.places; e += CUDA_BLOCK)
        mine += args.rows[e / args.places * width + c * args.places + e % args.places];
    const float sum = block_sum<CUDA_BLOCK>(mine);
    if (thread_index() == 0)
        args.row[c] = args.adds ? args.row[c] + sum : sum;
}

KERNEL_BOUND(sum_rows, cuda_rows_args, CUDA_BLOCK, 4)
{
    if (args.places > 1)
        sum_channel(args);
    else
        sum_columns(args);
}

/* ---- Windows ------------------------------------------------------------------------------- */

/* An element of images [batch, channels, rows, columns] or [batch, channels, out_rows,
 * out_columns].
 */
struct image_place {
    uint64_t plane; /* number of the channel, in all images */
    uint32_t y, x;
};

DEVICE image_place place_of(uint64_t i, uint32_t rows, uint32_t columns)
{
    const uint64_t line = i / columns;
    return image_place{line / rows, (uint32_t)(line % rows), (uint32_t)(i % columns)};
}

/* Windows first to end - 1 contain element @p at of an axis. */
struct window_range {
    uint32_t first, end;
};

DEVICE window_range windows_over(const cuda_window &w, uint32_t at, uint32_t outs)
{
    const uint32_t padded = at + w.padding, last = padded / w.stride;
    const uint32_t first = padded < w.kernel ? 0 : (padded - w.kernel) / w.stride + 1;
    return window_range{first, last < outs ? last + 1 : outs};
}

/* Elements first to end - 1 of an axis are in window @p out. */
DEVICE window_range elements_of(const cuda_window &w, uint32_t out, uint32_t length)
{
    const uint32_t begin = out * w.stride, end = begin + w.kernel - w.padding;
    return window_range{begin > w.padding ? begin - w.padding : 0, end < length ? end : length};
}

KERNEL_BOUND(fill_columns, cuda_columns_args, CUDA_BLOCK, 4)
{
    const cuda_window &w = args.window;
    const uint32_t area = w.kernel * w.kernel, places = w.out_rows * w.out_columns;
    const uint64_t i = worker(), weight = i / places, channel = weight / area;
    if (channel >= args.batch * w.channels)
        return;
    const uint32_t at = (uint32_t)(weight % area), p = (uint32_t)(i % places);
    /* Before the image, these wrap around to large numbers. */
    const uint32_t y = p / w.out_columns * w.stride + at / w.kernel - w.padding;
    const uint32_t x = p % w.out_columns * w.stride + at % w.kernel - w.padding;
    args.columns[i] = y < w.rows && x < w.columns
                          ? args.images[(channel * w.rows + y) * w.columns + x]
                          : 0.0F;
}

/* Windows further to the lower right have the element further to their upper left, so that the
 * order of w is the descending order of windows. */
KERNEL_BOUND(spread_columns, cuda_columns_args, CUDA_BLOCK, 4)
{
    const cuda_window &w = args.window;
    const uint32_t area = w.kernel * w.kernel, places = w.out_rows * w.out_columns;
    const uint64_t i = worker();
    const image_place at = place_of(i, w.rows, w.columns);
    if (at.plane >= args.batch * w.channels)
        return;
    const window_range ys = windows_over(w, at.y, w.out_rows),
                       xs = windows_over(w, at.x, w.out_columns);
    const float *columns = args.columns + at.plane * area * places;
    float sum = 0.0F;
    for (uint32_t y = ys.end; y > ys.first; y--) {
        const uint32_t ky = at.y + w.padding - (y - 1) * w.stride;
        for (uint32_t x = xs.end; x > xs.first; x--) {
            const uint32_t kx = at.x + w.padding - (x - 1) * w.stride;
            sum +=
                columns[(uint64_t)(ky * w.kernel + kx) * places + (y - 1) * w.out_columns + x - 1];
        }
    }
    args.images[i] = sum;
}

/* @tparam MAX  the maximum of each window and its place; else the mean. */
template <bool MAX> DEVICE void pool(const cuda_pool_args &args)
{
    const cuda_window &w = args.window;
    const uint64_t i = worker();
    const image_place out = place_of(i, w.out_rows, w.out_columns);
    if (out.plane >= args.batch * w.channels)
        return;
    const window_range ys = elements_of(w, out.y, w.rows), xs = elements_of(w, out.x, w.columns);
    const float *plane = args.in + out.plane * w.rows * w.columns;
    uint32_t best = ys.first * w.columns + xs.first;
    float result = MAX ? plane[best] : 0.0F;
    for (uint32_t y = ys.first; y < ys.end; y++)
        for (uint32_t x = xs.first; x < xs.end; x++) {
            const float value = plane[y * w.columns + x];
            const bool wins = value > result || value != value;
            best = wins ? y * w.columns + x : best;
            result = !MAX ? result + value : wins ? value : result;
        }
    if (MAX)
        args.places[i] = best;
    args.out[i] = MAX ? result : result / (float)(w.kernel * w.kernel);
}

KERNEL_BOUND(max_pool, cuda_pool_args, CUDA_BLOCK, 4)
{
    pool<true>(args);
}

KERNEL_BOUND(mean_pool, cuda_pool_args, CUDA_BLOCK, 4)
{
    pool<false>(args);
}

/* @tparam MAX  the gradient of a window belongs to its maximum; else each element has a share. */
template <bool MAX> DEVICE void pool_gradient(const cuda_pool_args &args)
{
    const cuda_window &w = args.window;
    const uint64_t i = worker();
    const image_place in = place_of(i, w.rows, w.columns);
    if (in.plane >= args.batch * w.channels)
        return;
    const window_range ys = windows_over(w, in.y, w.out_rows),
                       xs = windows_over(w, in.x, w.out_columns);
    const uint64_t first = in.plane * w.out_rows * w.out_columns;
    float sum = 0.0F;
    for (uint32_t y = ys.first; y < ys.end; y++)
        for (uint32_t x = xs.first; x < xs.end; x++) {
            const uint64_t out = first + y * w.out_columns + x;
            if (!MAX)
                sum += args.out[out] / (float)(w.kernel * w.kernel);
            else if (args.places[out] == in.y * w.columns + in.x)
                sum += args.out[out];
        }
    args.in[i] = sum;
}

KERNEL_BOUND(max_pool_gradient, cuda_pool_args, CUDA_BLOCK, 4)
{
    pool_gradient<true>(args);
}

KERNEL_BOUND(mean_pool_gradient, cuda_pool_args, CUDA_BLOCK, 4)
{
    pool_gradient<false>(args);
}

/* ---- Dropout ------------------------------------------------------------------------------- */

/* Philox4x32-10 of train/base/philox.h. */
DEVICE void philox(uint32_t word[4], uint32_t key0, uint32_t key1)
{
    UNROLL
    for (int round = 0; round < 10; round++) {
        const uint64_t low = (uint64_t)0xd2511f53 * word[0], high = (uint64_t)0xcd9e8d57 * word[2];
        word[0] = (uint32_t)(high >> 32) ^ word[1] ^ key0;
        word[1] = (uint32_t)high;
        word[2] = (uint32_t)(low >> 32) ^ word[3] ^ key1;
        word[3] = (uint32_t)low;
        key0 += 0x9e3779b9;
        key1 += 0xbb67ae85;
    }
}

/* Each thread has the four elements of a counter. */
KERNEL_BOUND(dropout, cuda_dropout_args, CUDA_BLOCK, 4)
{
    const uint64_t groups = (args.width + 3) / 4, i = worker(), sample = i / groups;
    const uint64_t first = i % groups * 4;
    if (sample >= args.batch)
        return;
    uint32_t word[4] = {(uint32_t)(first / 4), args.node,
                        args.samples != nullptr ? args.samples[sample] : (uint32_t)sample,
                        args.update != nullptr ? args.update->step : args.step};
    if (args.draws)
        philox(word, args.key[0], args.key[1]);
    UNROLL
    for (unsigned k = 0; k < 4; k++) {
        const uint64_t e = sample * args.width + first + k;
        if (first + k >= args.width)
            return;
        if (args.draws)
            args.keep[e] = (double)word[k] >= args.dropped;
        args.out[e] = args.keep[e] ? args.in[e] * args.scale : 0.0F;
    }
}

/* ---- Losses: a block has one row ------------------------------------------------------------- */

/* All threads call this. @return the largest output of the row; NaN if the first is. */
DEVICE float find_largest(const float *outputs, uint64_t classes)
{
    SHARED float bests[CUDA_LOSS_BLOCK];
    const unsigned t = thread_index();
    float best = outputs[t < classes ? t : 0];
    for (uint64_t j = t + CUDA_LOSS_BLOCK; j < classes; j += CUDA_LOSS_BLOCK)
        best = outputs[j] > best ? outputs[j] : best;
    bests[t] = best;
    block_barrier();
    best = bests[0];
    for (unsigned k = 1; k < CUDA_LOSS_BLOCK; k++)
        best = bests[k] > best ? bests[k] : best;
    return best;
}

KERNEL_BOUND(cross_entropy, cuda_loss_args, CUDA_LOSS_BLOCK, 4)
{
    const uint64_t row = block_index(), label = args.labels[row];
    const float *outputs = args.outputs + row * args.classes;
    float *gradient = args.gradient + row * args.classes;
    const float top = find_largest(outputs, args.classes);
    double mine = 0;
    for (uint64_t j = thread_index(); j < args.classes; j += CUDA_LOSS_BLOCK)
        mine += (double)expf(outputs[j] - top);
    const double sum = block_sum<CUDA_LOSS_BLOCK>(mine);
    const float factor = (float)args.scale, all = (float)sum;
    if (thread_index() == 0)
        args.losses[row] = log(sum) + (double)top - (double)outputs[label];
    block_barrier(); /* the gradient may overwrite the outputs */
    for (uint64_t j = thread_index(); j < args.classes; j += CUDA_LOSS_BLOCK)
        gradient[j] = factor * (expf(outputs[j] - top) / all - (j == label ? 1.0F : 0.0F));
}

KERNEL_BOUND(mean_squares, cuda_loss_args, CUDA_LOSS_BLOCK, 4)
{
    const uint64_t row = block_index(), label = args.labels[row];
    const float *outputs = args.outputs + row * args.classes;
    float *gradient = args.gradient + row * args.classes;
    const float factor = (float)(2.0 * args.scale / (double)args.classes);
    double mine = 0;
    for (uint64_t j = thread_index(); j < args.classes; j += CUDA_LOSS_BLOCK) {
        const float error = outputs[j] - (j == label ? 1.0F : 0.0F);
        mine += (double)error * (double)error;
        gradient[j] = factor * error;
    }
    const double sum = block_sum<CUDA_LOSS_BLOCK>(mine);
    if (thread_index() == 0)
        args.losses[row] = sum / (double)args.classes;
}

KERNEL_BOUND(sum_losses, cuda_sum_losses_args, CUDA_BLOCK, 4)
{
    const double sum = block_sum_of<CUDA_BLOCK>(args.losses, args.rows);
    if (thread_index() == 0)
        *args.sum += sum;
}
