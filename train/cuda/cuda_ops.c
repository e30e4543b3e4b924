/* SPDX-License-Identifier: Apache-2.0
 * The passes of ops on a GPU. The head of each op's file in nn/ states its shapes and formulas.
 *
 * A convolution copies the windows of some samples at a time into the columns of a matrix for each
 * sample, and multiplies them by the weights, all samples in one batched product. The gradients of
 * the weights are computed for each sample, and then added up in a fixed order. */
#include <math.h>

#include "cuda_place.h"
#include "window.h"

static unsigned tiles(uint64_t count)
{
    return (unsigned)((count + CUDA_BLOCK - 1) / CUDA_BLOCK);
}

static void map(const op_run *run, cuda_train_kernel kernel, float *out, const float *a,
                const float *b)
{
    cuda_map_args args = {.out = out,
                          .a = a,
                          .b = b,
                          .count = run->batch * shape_count(&run->use->out)};
    cuda_place_launch(cuda_place_of(run->place), kernel,
                      cuda_tiles(args.count, CAST_GROUP, CUDA_BLOCK), CUDA_BLOCK, &args,
                      run->use->op->name);
}

/* row (channels) = the sums of rows (count, channels, places), or += if @p adds. */
static void sum_rows(const op_run *run, const float *rows, float *row, size_t count,
                     size_t channels, size_t places, bool adds)
{
    cuda_rows_args args = {.rows = (float *)rows,
                           .row = row,
                           .count = count,
                           .channels = (uint32_t)channels,
                           .places = (uint32_t)places,
                           .adds = adds};
    cuda_place_launch(cuda_place_of(run->place), CUDA_sum_rows,
                      cuda_sum_blocks(args.channels, args.places), CUDA_BLOCK, &args,
                      run->use->op->name);
}

/* The gradient of the bias, whose rows are those of out_grad, beside the trunk. */
static void sum_bias(const op_run *run, size_t count, size_t channels, size_t places)
{
    cuda_place *place = cuda_place_of(run->place);
    cuda_place_fork(place, CUDA_SUMS);
    sum_rows(run, run->out_grad, run->grads[1], count, channels, places, run->add[1]);
    cuda_place_return(place);
}

static void product(const op_run *run, const cuda_product_shape *shape, const float *a,
                    const float *b, float *c, const float *bias)
{
    cuda_place *place = cuda_place_of(run->place);
    if (cuda_place_enter(place))
        cuda_place_keep(place,
                        cuda_product(&place->products, place->lane->stream, place->lane->workspace,
                                     shape, a, b, c, bias),
                        run->use->op->name);
}

/* out (rows, channels, places) += bias (channels); then negative numbers become 0 if a relu
 * follows. */
static void add_to_rows(const op_run *run, const float *bias, size_t rows, size_t channels,
                        size_t places)
{
    cuda_rows_args args = {.rows = run->out,
                           .row = (float *)bias,
                           .count = rows,
                           .channels = (uint32_t)channels,
                           .places = (uint32_t)places,
                           .relu = run->use->has_relu};
    cuda_place_launch(cuda_place_of(run->place), CUDA_add_to_rows, tiles(rows * channels * places),
                      CUDA_BLOCK, &args, run->use->op->name);
}

/* ---- relu, tanh, flatten --------------------------------------------------------------------- */

static void relu_forward(const op_run *run)
{
    if (!run->use->is_done_before)
        map(run, CUDA_map_relu, run->out, run->in[0], NULL);
}

static void relu_inputs(const op_run *run)
{
    map(run, CUDA_map_relu_gradient, run->in_grad[0], run->out_grad, run->out);
}

static void tanh_forward(const op_run *run)
{
    map(run, CUDA_map_tanh, run->out, run->in[0], NULL);
}

static void tanh_inputs(const op_run *run)
{
    map(run, CUDA_map_tanh_gradient, run->in_grad[0], run->out_grad, run->out);
}

static void copy(const op_run *run, float *to, const float *from)
{
    if (to != from)
        run->place->copy(run->place, to, from,
                         run->batch * shape_count(&run->use->out) * sizeof(float));
}

static void flatten_forward(const op_run *run)
{
    copy(run, run->out, run->in[0]);
}

static void flatten_inputs(const op_run *run)
{
    copy(run, run->in_grad[0], run->out_grad);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static void drop(const op_run *run, float *out, const float *in, bool draws)
{
    const double probability = run->use->settings.probability;
    cuda_dropout_args args = {
        .out = out,
        .in = in,
        .keep = run->saved,
        .samples = run->random.samples,
        .batch = run->batch,
        .width = shape_count(&run->use->out),
        .dropped = ldexp(probability, 32),
        .scale = (float)(1.0 / (1.0 - probability)),
        .key = {(uint32_t)run->random.seed, (uint32_t)(run->random.seed >> 32)},
        .node = run->use->number,
        .step = run->random.step,
        .draws = draws,
        .update = cuda_updates_numbers(cuda_place_of(run->place)),
    };
    cuda_place_launch(cuda_place_of(run->place), CUDA_dropout,
                      tiles(args.batch * ((args.width + 3) / 4)), CUDA_BLOCK, &args,
                      run->use->op->name);
}

static void dropout_forward(const op_run *run)
{
    if (run->training)
        drop(run, run->out, run->in[0], true);
    else
        copy(run, run->out, run->in[0]);
}

static void dropout_inputs(const op_run *run)
{
    drop(run, run->in_grad[0], run->out_grad, false);
}

/* ---- linear ---------------------------------------------------------------------------------- */

enum { BIAS_ALIGNMENT = 16 };

typedef struct linear_sizes {
    size_t rows, inputs, outputs;
} linear_sizes;

static linear_sizes linear_sizes_of(const op_run *run)
{
    const op_use *use = run->use;
    return (linear_sizes){.rows = run->batch * shape_rows(&use->in[0]),
                          .inputs = shape_width(&use->in[0]),
                          .outputs = shape_width(&use->out)};
}

static void linear_forward(const op_run *run)
{
    const linear_sizes n = linear_sizes_of(run);
    cuda_product_shape shape = {
        .transpose_b = 1, .m = n.rows, .n = n.outputs, .k = n.inputs, .batch = 1};
    const float *bias = run->use->settings.no_bias ? NULL : run->params[1];
    /* cuBLASLt takes aligned biases only. An engine aligns all tensors. */
    const bool is_aligned = (uintptr_t)bias % BIAS_ALIGNMENT == 0;
    if (is_aligned)
        shape.epilogue = (bias != NULL ? CUDA_BIAS : CUDA_PLAIN) |
                         (run->use->has_relu ? CUDA_RELU : CUDA_PLAIN);
    product(run, &shape, run->in[0], run->params[0], run->out, is_aligned ? bias : NULL);
    if (!is_aligned)
        add_to_rows(run, bias, n.rows, n.outputs, 1);
}

static void linear_params(const op_run *run)
{
    const linear_sizes n = linear_sizes_of(run);
    const cuda_product_shape shape = {.transpose_a = 1,
                                      .m = n.outputs,
                                      .n = n.inputs,
                                      .k = n.rows,
                                      .batch = 1,
                                      .accumulate = run->add[0]};
    if (!run->use->settings.no_bias)
        sum_bias(run, n.rows, n.outputs, 1);
    cuda_place_fork(cuda_place_of(run->place), CUDA_PRODUCTS);
    product(run, &shape, run->out_grad, run->in[0], run->grads[0], NULL);
    cuda_place_return(cuda_place_of(run->place));
}

static void linear_inputs(const op_run *run)
{
    const linear_sizes n = linear_sizes_of(run);
    const cuda_product_shape shape = {.m = n.rows, .n = n.inputs, .k = n.outputs, .batch = 1};
    product(run, &shape, run->out_grad, run->params[0], run->in_grad[0], NULL);
}

/* ---- Windows --------------------------------------------------------------------------------- */

static cuda_window device_window(const op_use *use)
{
    const op_window w = window_of(use);
    return (cuda_window){.channels = (uint32_t)w.channels,
                         .rows = (uint32_t)w.rows,
                         .columns = (uint32_t)w.columns,
                         .out_rows = (uint32_t)w.out_rows,
                         .out_columns = (uint32_t)w.out_columns,
                         .kernel = (uint32_t)w.kernel,
                         .stride = (uint32_t)w.stride,
                         .padding = (uint32_t)w.padding};
}

/* @param of  the shape whose elements the kernel writes. */
static void pool(const op_run *run, cuda_train_kernel kernel, const float *in, const float *out,
                 const op_shape *of)
{
    cuda_pool_args args = {.in = (float *)in,
                           .out = (float *)out,
                           .places = (uint32_t *)(void *)run->saved,
                           .batch = run->batch,
                           .window = device_window(run->use)};
    cuda_place_launch(cuda_place_of(run->place), kernel, tiles(run->batch * shape_count(of)),
                      CUDA_BLOCK, &args, run->use->op->name);
}

static void max_pool_forward(const op_run *run)
{
    pool(run, CUDA_max_pool, run->in[0], run->out, &run->use->out);
}

static void max_pool_inputs(const op_run *run)
{
    pool(run, CUDA_max_pool_gradient, run->in_grad[0], run->out_grad, &run->use->in[0]);
}

static void mean_pool_forward(const op_run *run)
{
    pool(run, CUDA_mean_pool, run->in[0], run->out, &run->use->out);
}

static void mean_pool_inputs(const op_run *run)
{
    pool(run, CUDA_mean_pool_gradient, run->in_grad[0], run->out_grad, &run->use->in[0]);
}

/* ---- conv2d ---------------------------------------------------------------------------------- */

enum { SCRATCH_MOST_BYTES = 64 << 20 };

/* Sizes of the matrices, as in conv_gemm.c. */
typedef struct conv_sizes {
    size_t outputs, weights, places;
    size_t in_count, out_count; /* elements of one sample */
    size_t at_once;             /* samples whose columns are in scratch memory */
} conv_sizes;

static conv_sizes conv_sizes_of(const op_use *use, size_t batch)
{
    const op_window w = window_of(use);
    conv_sizes sizes = {.outputs = use->out.dim[0],
                        .weights = w.channels * w.kernel * w.kernel,
                        .places = w.out_rows * w.out_columns,
                        .in_count = shape_count(&use->in[0]),
                        .out_count = shape_count(&use->out)};
    const size_t most = SCRATCH_MOST_BYTES /
                        (sizes.weights * (sizes.places + sizes.outputs) * sizeof(float));
    sizes.at_once = most < 1 ? 1 : most < batch ? most : batch;
    return sizes;
}

/* The columns of some samples; beside them, also the gradients of the weights of each sample. */
static size_t conv_columns(const conv_sizes *sizes)
{
    return sizes->at_once * sizes->weights * sizes->places;
}

static size_t conv_beside(const conv_sizes *sizes)
{
    return conv_columns(sizes) + sizes->at_once * sizes->weights * sizes->outputs;
}

/* @param kernel  CUDA_fill_columns or CUDA_spread_columns
 * @param written  elements that it writes */
static void copy_columns(const op_run *run, cuda_train_kernel kernel, const float *images,
                         float *columns, size_t samples, uint64_t written)
{
    cuda_columns_args args = {.images = (float *)images,
                              .columns = columns,
                              .batch = samples,
                              .window = device_window(run->use)};
    cuda_place_launch(cuda_place_of(run->place), kernel, tiles(written), CUDA_BLOCK, &args,
                      run->use->op->name);
}

/* A pass over @p samples samples from @p first on. */
typedef void conv_pass(const op_run *run, const conv_sizes *sizes, size_t first, size_t samples);

static void for_samples(const op_run *run, conv_pass *pass)
{
    const conv_sizes sizes = conv_sizes_of(run->use, run->batch);
    for (size_t first = 0; first < run->batch; first += sizes.at_once) {
        const size_t left = run->batch - first;
        pass(run, &sizes, first, left < sizes.at_once ? left : sizes.at_once);
    }
}

/* out [outputs, places] = weight [outputs, weights] · columns [weights, places] */
static void forward_samples(const op_run *run, const conv_sizes *sizes, size_t first,
                            size_t samples)
{
    const cuda_product_shape shape = {.m = sizes->outputs,
                                      .n = sizes->places,
                                      .k = sizes->weights,
                                      .batch = samples,
                                      .step_b = sizes->weights * sizes->places,
                                      .step_c = sizes->out_count};
    copy_columns(run, CUDA_fill_columns, run->in[0] + first * sizes->in_count, run->scratch,
                 samples, samples * sizes->weights * sizes->places);
    product(run, &shape, run->params[0], run->scratch, run->out + first * sizes->out_count, NULL);
}

static void conv_forward_pass(const op_run *run)
{
    const conv_sizes sizes = conv_sizes_of(run->use, run->batch);
    for_samples(run, forward_samples);
    add_to_rows(run, run->params[1], run->batch, sizes.outputs, sizes.places);
}

/* weight_grad [outputs, weights] of each sample = out_grad [outputs, places] · columnsᵀ */
static void params_of_samples(const op_run *run, const conv_sizes *sizes, size_t first,
                              size_t samples)
{
    const size_t step = sizes->outputs * sizes->weights;
    const cuda_product_shape shape = {.transpose_b = 1,
                                      .m = sizes->outputs,
                                      .n = sizes->weights,
                                      .k = sizes->places,
                                      .batch = samples,
                                      .step_a = sizes->out_count,
                                      .step_b = sizes->weights * sizes->places,
                                      .step_c = step};
    float *columns = run->scratch_beside, *grads = columns + conv_columns(sizes);
    copy_columns(run, CUDA_fill_columns, run->in[0] + first * sizes->in_count, columns, samples,
                 samples * sizes->weights * sizes->places);
    product(run, &shape, run->out_grad + first * sizes->out_count, columns, grads, NULL);
    sum_rows(run, grads, run->grads[0], samples, step, 1, run->add[0] || first > 0);
}

static void conv_params_pass(const op_run *run)
{
    const conv_sizes sizes = conv_sizes_of(run->use, run->batch);
    sum_bias(run, run->batch, sizes.outputs, sizes.places);
    cuda_place_fork(cuda_place_of(run->place), CUDA_PRODUCTS);
    for_samples(run, params_of_samples);
    cuda_place_return(cuda_place_of(run->place));
}

/* columns [weights, places] = weightᵀ [weights, outputs] · out_grad [outputs, places] */
static void inputs_of_samples(const op_run *run, const conv_sizes *sizes, size_t first,
                              size_t samples)
{
    const cuda_product_shape shape = {.transpose_a = 1,
                                      .m = sizes->weights,
                                      .n = sizes->places,
                                      .k = sizes->outputs,
                                      .batch = samples,
                                      .step_b = sizes->out_count,
                                      .step_c = sizes->weights * sizes->places};
    product(run, &shape, run->params[0], run->out_grad + first * sizes->out_count, run->scratch,
            NULL);
    copy_columns(run, CUDA_spread_columns, run->in_grad[0] + first * sizes->in_count, run->scratch,
                 samples, samples * sizes->in_count);
}

static void conv_inputs_pass(const op_run *run)
{
    for_samples(run, inputs_of_samples);
}

/* ---- The table ------------------------------------------------------------------------------- */

static const struct {
    const nn_op *op;
    op_functions functions;
} rows[] = {
    {&op_linear, {linear_forward, linear_params, linear_inputs}},
    {&op_conv2d, {conv_forward_pass, conv_params_pass, conv_inputs_pass}},
    {&op_max_pool2d, {max_pool_forward, NULL, max_pool_inputs}},
    {&op_avg_pool2d, {mean_pool_forward, NULL, mean_pool_inputs}},
    {&op_relu, {relu_forward, NULL, relu_inputs}},
    {&op_tanh, {tanh_forward, NULL, tanh_inputs}},
    {&op_flatten, {flatten_forward, NULL, flatten_inputs}},
    {&op_dropout, {dropout_forward, NULL, dropout_inputs}},
};

const op_functions *cuda_ops_functions(const nn_op *op)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == op)
            return &rows[i].functions;
    return NULL;
}

size_t cuda_ops_scratch_bytes(const op_use *use, size_t batch)
{
    if (use->op != &op_conv2d)
        return 0;
    const conv_sizes sizes = conv_sizes_of(use, batch);
    return conv_columns(&sizes) * sizeof(float);
}

size_t cuda_ops_scratch_beside(const op_use *use, size_t batch)
{
    if (use->op != &op_conv2d)
        return 0;
    const conv_sizes sizes = conv_sizes_of(use, batch);
    return conv_beside(&sizes) * sizeof(float);
}
