/* SPDX-License-Identifier: Apache-2.0
 * Computes convolutions with oneDNN's primitives. oneDNN chooses inner formats for the operands,
 * mostly blocks of 8 or 16 channels, whereas the trainer's formats are [batch, channels, rows,
 * columns] and [outputs, channels, kernel, kernel]; so operands are reordered before and results
 * after each pass. Primitives and memory for inner formats are made once for each batch size. */
#include "conv.h"

#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdlib.h>

#include "errors.h"
#include "window.h"

enum { OPERANDS_MAX = 4, PLANS_MAX = 4 };

/* An operand or result of a pass, in the trainer's format and in the inner one. */
typedef struct conv_operand {
    int argument; /* DNNL_ARG_… */
    bool is_result;
    dnnl_memory_t plain;      /* in the trainer's format; its address is set before each pass */
    dnnl_memory_t inner;      /* in the inner format; plain itself if the formats are the same */
    dnnl_primitive_t reorder; /* between the two; NULL if the formats are the same */
} conv_operand;

/* One pass: forward, gradients of parameters, or gradient of the input. */
typedef struct conv_pass {
    dnnl_primitive_t primitive;
    conv_operand operands[OPERANDS_MAX];
    int count;
} conv_pass;

/* All passes for batches of one size. */
typedef struct conv_plan {
    size_t batch;       /* samples; 0: this entry is empty */
    unsigned long used; /* number of the latest conv_prepare() for it; the oldest one is replaced */
    conv_pass forward, params, inputs;
} conv_plan;

/* All plans of one use of the op. */
typedef struct conv_plans {
    conv_plan list[PLANS_MAX];
    unsigned long calls; /* of conv_prepare() */
    dnnl_stream_t stream;
    float *sums; /* [weights] temporary gradient, which is then added to the stored one */
} conv_plans;

/* Sizes of a convolution, as oneDNN's descriptors. */
typedef struct conv_dims {
    dnnl_memory_desc_t in, weight, bias, out;       /* in the trainer's formats */
    dnnl_memory_desc_t any_in, any_weight, any_out; /* in formats that oneDNN chooses */
    dnnl_dims_t strides, padding_before, padding_after;
} conv_dims;

static dnnl_engine_t engine;
static dnnl_status_t engine_status;
static pthread_once_t engine_once = PTHREAD_ONCE_INIT;

static void create_engine(void)
{
    engine_status = dnnl_engine_create(&engine, dnnl_cpu, 0);
}

static ring_status check_dnnl(dnnl_status_t status)
{
    if (status == dnnl_success)
        return RING_OK;
    return train_fail(status == dnnl_out_of_memory ? RING_ERR_MEMORY : RING_ERR_INTERNAL,
                      "oneDNN cannot prepare a convolution: dnnl_status_t is %d", (int)status);
}

/* ---- Making a pass ------------------------------------------------------------------------- */

static void destroy_pass(conv_pass *pass)
{
    for (int i = 0; i < pass->count; i++) {
        conv_operand *operand = &pass->operands[i];
        if (operand->inner != operand->plain)
            dnnl_memory_destroy(operand->inner);
        dnnl_memory_destroy(operand->plain);
        dnnl_primitive_destroy(operand->reorder);
    }
    dnnl_primitive_destroy(pass->primitive);
    *pass = (conv_pass){0};
}

/* Makes the primitive that reorders an operand to its inner format, or a result back. */
static dnnl_status_t create_reorder(conv_operand *operand, const dnnl_memory_desc_t *plain,
                                    const dnnl_memory_desc_t *inner)
{
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status = dnnl_memory_create(&operand->inner, inner, engine, DNNL_MEMORY_ALLOCATE);
    if (status == dnnl_success)
        status = dnnl_reorder_primitive_desc_create(&description,
                                                    operand->is_result ? inner : plain, engine,
                                                    operand->is_result ? plain : inner, engine,
                                                    NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&operand->reorder, description);
    dnnl_primitive_desc_destroy(description);
    return status;
}

/* Adds an operand to a pass whose primitive has chosen its formats. @param plain  trainer's format
 */
static dnnl_status_t add_operand(conv_pass *pass, const_dnnl_primitive_desc_t description,
                                 int argument, const dnnl_memory_desc_t *plain, bool is_result)
{
    const dnnl_memory_desc_t *inner = dnnl_primitive_desc_query_md(description,
                                                                   dnnl_query_exec_arg_md,
                                                                   argument);
    conv_operand *operand = &pass->operands[pass->count++];
    operand->argument = argument;
    operand->is_result = is_result;
    const dnnl_status_t status = dnnl_memory_create(&operand->plain, plain, engine,
                                                    DNNL_MEMORY_NONE);
    operand->inner = operand->plain;
    if (status != dnnl_success || dnnl_memory_desc_equal(plain, inner))
        return status;
    operand->inner = NULL;
    return create_reorder(operand, plain, inner);
}

/* Description of an operand for create_pass(). */
typedef struct operand_row {
    int argument;
    const dnnl_memory_desc_t *plain;
    bool is_result;
} operand_row;

static dnnl_status_t create_pass(conv_pass *pass, const_dnnl_primitive_desc_t description,
                                 const operand_row *rows, int count)
{
    dnnl_status_t status = dnnl_primitive_create(&pass->primitive, description);
    for (int i = 0; i < count && status == dnnl_success; i++)
        status = add_operand(pass, description, rows[i].argument, rows[i].plain, rows[i].is_result);
    return status;
}

static dnnl_status_t create_forward(conv_plan *plan, const conv_dims *dims,
                                    dnnl_primitive_desc_t *description)
{
    dnnl_convolution_desc_t operation;
    const operand_row rows[] = {{DNNL_ARG_SRC, &dims->in, false},
                                {DNNL_ARG_WEIGHTS, &dims->weight, false},
                                {DNNL_ARG_BIAS, &dims->bias, false},
                                {DNNL_ARG_DST, &dims->out, true}};
    dnnl_status_t status = dnnl_convolution_forward_desc_init(&operation, dnnl_forward_training,
                                                              dnnl_convolution_direct,
                                                              &dims->any_in, &dims->any_weight,
                                                              &dims->bias, &dims->any_out,
                                                              dims->strides, dims->padding_before,
                                                              dims->padding_after);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(description, &operation, NULL, engine, NULL);
    return status == dnnl_success ? create_pass(&plan->forward, *description, rows, 4) : status;
}

static dnnl_status_t create_params(conv_plan *plan, const conv_dims *dims,
                                   const_dnnl_primitive_desc_t forward)
{
    dnnl_convolution_desc_t operation;
    dnnl_primitive_desc_t description = NULL;
    const operand_row rows[] = {{DNNL_ARG_SRC, &dims->in, false},
                                {DNNL_ARG_DIFF_DST, &dims->out, false},
                                {DNNL_ARG_DIFF_WEIGHTS, &dims->weight, true}};
    dnnl_status_t status = dnnl_convolution_backward_weights_desc_init(
        &operation, dnnl_convolution_direct, &dims->any_in, &dims->any_weight, NULL, &dims->any_out,
        dims->strides, dims->padding_before, dims->padding_after);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&description, &operation, NULL, engine, forward);
    if (status == dnnl_success)
        status = create_pass(&plan->params, description, rows, 3);
    dnnl_primitive_desc_destroy(description);
    return status;
}

static dnnl_status_t create_inputs(conv_plan *plan, const conv_dims *dims,
                                   const_dnnl_primitive_desc_t forward)
{
    dnnl_convolution_desc_t operation;
    dnnl_primitive_desc_t description = NULL;
    const operand_row rows[] = {{DNNL_ARG_WEIGHTS, &dims->weight, false},
                                {DNNL_ARG_DIFF_DST, &dims->out, false},
                                {DNNL_ARG_DIFF_SRC, &dims->in, true}};
    dnnl_status_t status = dnnl_convolution_backward_data_desc_init(
        &operation, dnnl_convolution_direct, &dims->any_in, &dims->any_weight, &dims->any_out,
        dims->strides, dims->padding_before, dims->padding_after);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&description, &operation, NULL, engine, forward);
    if (status == dnnl_success)
        status = create_pass(&plan->inputs, description, rows, 3);
    dnnl_primitive_desc_destroy(description);
    return status;
}

/* ---- Plans --------------------------------------------------------------------------------- */

/* Describes an operand in the trainer's format, and in any format. */
static void describe(dnnl_memory_desc_t *plain, dnnl_memory_desc_t *any, const dnnl_dims_t dims,
                     dnnl_format_tag_t tag)
{
    dnnl_memory_desc_init_by_tag(plain, 4, dims, dnnl_f32, tag);
    dnnl_memory_desc_init_by_tag(any, 4, dims, dnnl_f32, dnnl_format_tag_any);
}

/* @return the padding at the end of an axis such that the last window ends exactly there. Elements
 * after the last whole window are not read, so it may be smaller than at the start, or even
 * negative. */
static dnnl_dim_t padding_after(const op_window *window, size_t out, size_t length)
{
    return (dnnl_dim_t)((out - 1) * window->stride + window->kernel) -
           (dnnl_dim_t)(length + window->padding);
}

static conv_dims dims_of(const op_use *use, size_t batch)
{
    const op_window w = window_of(use);
    const dnnl_dim_t rows = (dnnl_dim_t)batch, channels = (dnnl_dim_t)w.channels,
                     outputs = (dnnl_dim_t)use->out.dim[0], kernel = (dnnl_dim_t)w.kernel,
                     stride = (dnnl_dim_t)w.stride, padding = (dnnl_dim_t)w.padding;
    const dnnl_dims_t in = {rows, channels, (dnnl_dim_t)w.rows, (dnnl_dim_t)w.columns},
                      weight = {outputs, channels, kernel, kernel}, bias = {outputs},
                      out = {rows, outputs, (dnnl_dim_t)w.out_rows, (dnnl_dim_t)w.out_columns};
    conv_dims dims = {.strides = {stride, stride},
                      .padding_before = {padding, padding},
                      .padding_after = {padding_after(&w, w.out_rows, w.rows),
                                        padding_after(&w, w.out_columns, w.columns)}};
    describe(&dims.in, &dims.any_in, in, dnnl_nchw);
    describe(&dims.weight, &dims.any_weight, weight, dnnl_oihw);
    describe(&dims.out, &dims.any_out, out, dnnl_nchw);
    dnnl_memory_desc_init_by_tag(&dims.bias, 1, bias, dnnl_f32, dnnl_a);
    return dims;
}

static void destroy_plan(conv_plan *plan)
{
    destroy_pass(&plan->forward);
    destroy_pass(&plan->params);
    destroy_pass(&plan->inputs);
    *plan = (conv_plan){0};
}

static ring_status create_plan(conv_plan *plan, const op_use *use, size_t batch)
{
    const conv_dims dims = dims_of(use, batch);
    dnnl_primitive_desc_t forward = NULL;
    destroy_plan(plan);
    dnnl_status_t status = create_forward(plan, &dims, &forward);
    if (status == dnnl_success)
        status = create_params(plan, &dims, forward);
    if (status == dnnl_success)
        status = create_inputs(plan, &dims, forward);
    dnnl_primitive_desc_destroy(forward);
    if (status != dnnl_success)
        destroy_plan(plan);
    else
        plan->batch = batch;
    return check_dnnl(status);
}

/* @return the plan for @p batch samples, or else the least recently used plan. */
static conv_plan *choose_plan(conv_plans *plans, size_t batch)
{
    conv_plan *oldest = &plans->list[0];
    for (int i = 0; i < PLANS_MAX; i++) {
        if (plans->list[i].batch == batch)
            return &plans->list[i];
        if (plans->list[i].used < oldest->used)
            oldest = &plans->list[i];
    }
    return oldest;
}

static ring_status create_plans(op_use *use)
{
    const size_t weights = use->tensors[0].shape[0] * use->tensors[0].fan_in;
    pthread_once(&engine_once, create_engine);
    RING_TRY(check_dnnl(engine_status));
    RING_TRY(train_alloc(&use->plans, sizeof(conv_plans), "convolutions"));
    conv_plans *plans = use->plans;
    RING_TRY(train_alloc((void **)&plans->sums, weights * sizeof(float), "convolutions"));
    return check_dnnl(dnnl_stream_create(&plans->stream, engine, dnnl_stream_default_flags));
}

ring_status conv_prepare(op_use *use, size_t batch)
{
    if (use->plans == NULL)
        RING_TRY(create_plans(use));
    conv_plans *plans = use->plans;
    conv_plan *plan = choose_plan(plans, batch);
    if (plan->batch != batch)
        RING_TRY(create_plan(plan, use, batch));
    plan->used = ++plans->calls;
    return RING_OK;
}

void conv_release(op_use *use)
{
    conv_plans *plans = use->plans;
    if (plans == NULL)
        return;
    for (int i = 0; i < PLANS_MAX; i++)
        destroy_plan(&plans->list[i]);
    dnnl_stream_destroy(plans->stream);
    free(plans->sums);
    free(plans);
    use->plans = NULL;
}

size_t conv_scratch_bytes(const op_use *use)
{
    (void)use;
    return 0;
}

/* ---- Running a pass ------------------------------------------------------------------------ */

static void run_reorder(const conv_operand *operand, dnnl_stream_t stream)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM,
                                     operand->is_result ? operand->inner : operand->plain},
                                    {DNNL_ARG_TO,
                                     operand->is_result ? operand->plain : operand->inner}};
    if (operand->reorder != NULL)
        dnnl_primitive_execute(operand->reorder, stream, 2, args);
}

/* Runs a pass. oneDNN's statuses are not checked, since execution fails only if an argument is
 * missing.
 * @param addresses  [pass->count] of the operands in the trainer's format */
static void run_pass(const conv_pass *pass, dnnl_stream_t stream, const void *const *addresses)
{
    dnnl_exec_arg_t args[OPERANDS_MAX];
    for (int i = 0; i < pass->count; i++) {
        const conv_operand *operand = &pass->operands[i];
        dnnl_memory_set_data_handle(operand->plain, (void *)addresses[i]);
        args[i] = (dnnl_exec_arg_t){operand->argument, operand->inner};
        if (!operand->is_result)
            run_reorder(operand, stream);
    }
    dnnl_primitive_execute(pass->primitive, stream, pass->count, args);
    for (int i = 0; i < pass->count; i++) {
        if (pass->operands[i].is_result)
            run_reorder(&pass->operands[i], stream);
    }
    dnnl_stream_wait(stream);
}

/* @return the plan for the run's batch size, which need not be the size that was prepared last:
 * slots may contain batches of different sizes. */
static const conv_plan *plan_of(const op_run *run)
{
    return choose_plan(run->use->plans, run->batch);
}

void conv_forward(const op_run *run)
{
    const conv_plans *plans = run->use->plans;
    run_pass(&plan_of(run)->forward, plans->stream,
             (const void *[]){run->in[0], run->params[0], run->params[1], run->out});
}

void conv_params(const op_run *run)
{
    const conv_plans *plans = run->use->plans;
    const size_t weights = run->use->tensors[0].shape[0] * run->use->tensors[0].fan_in;
    float *result = run->add[0] ? plans->sums : run->grads[0];
    conv_bias_gradient(run);
    run_pass(&plan_of(run)->params, plans->stream,
             (const void *[]){run->in[0], run->out_grad, result});
    for (size_t i = 0; i < weights && run->add[0]; i++)
        run->grads[0][i] += result[i];
}

void conv_inputs(const op_run *run)
{
    const conv_plans *plans = run->use->plans;
    run_pass(&plan_of(run)->inputs, plans->stream,
             (const void *[]){run->params[0], run->out_grad, run->in_grad[0]});
}
