/* SPDX-License-Identifier: Apache-2.0
 * linear: out = in · weightᵀ + bias, as torch.nn.Linear.
 *     in [batch, inputs]  weight [outputs, inputs]  bias [outputs]  out [batch, outputs] */
#include <string.h>

#include "errors.h"
#include "gemm.h"
#include "op.h"

static ring_status linear_shape(op_use *use)
{
    if (use->in[0].dims != 1)
        return train_fail(RING_ERR_CONFIG, "linear takes [features]; put a flatten before it");
    const size_t inputs = use->in[0].dim[0], outputs = use->settings.outputs;
    use->out = (op_shape){.dim = {outputs}, .dims = 1};
    use->tensors[0] = (op_tensor){.name = "weight",
                                  .shape = {outputs, inputs},
                                  .dims = 2,
                                  .group = GROUP_DECAY,
                                  .fan_in = inputs};
    use->tensors[1] = (op_tensor){
        .name = "bias", .shape = {outputs}, .dims = 1, .group = GROUP_NO_DECAY, .fan_in = inputs};
    use->tensor_count = 2;
    return RING_OK;
}

static void add_row(float *restrict sum, const float *restrict row, size_t count)
{
    for (size_t j = 0; j < count; j++)
        sum[j] += row[j];
}

static void linear_forward(const op_run *run)
{
    const size_t inputs = run->use->in[0].dim[0], outputs = run->use->out.dim[0];
    gemm(false, true, run->batch, outputs, inputs, run->in[0], run->params[0], false, run->out);
    for (size_t i = 0; i < run->batch; i++)
        add_row(run->out + i * outputs, run->params[1], outputs);
}

/* bias_grad[j] = sum over i of out_delta[i, j] */
static void bias_gradient(const op_run *run)
{
    const size_t outputs = run->use->out.dim[0];
    if (!run->add[1])
        memset(run->grads[1], 0, outputs * sizeof(float));
    for (size_t i = 0; i < run->batch; i++)
        add_row(run->grads[1], run->out_delta + i * outputs, outputs);
}

/* weight_grad [outputs, inputs] = out_deltaᵀ · in */
static void linear_params(const op_run *run)
{
    bias_gradient(run);
    gemm(true, false, run->use->out.dim[0], run->use->in[0].dim[0], run->batch, run->out_delta,
         run->in[0], run->add[0], run->grads[0]);
}

/* in_delta [batch, inputs] = out_delta · weight */
static void linear_inputs(const op_run *run)
{
    gemm(false, false, run->batch, run->use->in[0].dim[0], run->use->out.dim[0], run->out_delta,
         run->params[0], false, run->in_delta[0]);
}

/* ---- Reference ----------------------------------------------------------------------------- */

static void linear_forward_reference(const op_run *run)
{
    const size_t inputs = run->use->in[0].dim[0], outputs = run->use->out.dim[0];
    for (size_t i = 0; i < run->batch; i++) {
        for (size_t o = 0; o < outputs; o++) {
            double sum = (double)run->params[1][o];
            for (size_t k = 0; k < inputs; k++)
                sum += (double)run->in[0][i * inputs + k] * (double)run->params[0][o * inputs + k];
            run->out[i * outputs + o] = (float)sum;
        }
    }
}

static void linear_params_reference(const op_run *run)
{
    const size_t inputs = run->use->in[0].dim[0], outputs = run->use->out.dim[0];
    bias_gradient(run);
    for (size_t at = 0; at < outputs * inputs; at++) {
        double sum = run->add[0] ? (double)run->grads[0][at] : 0.0;
        for (size_t i = 0; i < run->batch; i++)
            sum += (double)run->out_delta[i * outputs + at / inputs] *
                   (double)run->in[0][i * inputs + at % inputs];
        run->grads[0][at] = (float)sum;
    }
}

static void linear_inputs_reference(const op_run *run)
{
    const size_t inputs = run->use->in[0].dim[0], outputs = run->use->out.dim[0];
    for (size_t at = 0; at < run->batch * inputs; at++) {
        double sum = 0.0;
        for (size_t o = 0; o < outputs; o++)
            sum += (double)run->out_delta[at / inputs * outputs + o] *
                   (double)run->params[0][o * inputs + at % inputs];
        run->in_delta[0][at] = (float)sum;
    }
}

const nn_op op_linear = {
    .name = "linear",
    .inputs = 1,
    .takes = TAKES_OUTPUTS,
    .shape = linear_shape,
    .fast = {linear_forward, linear_params, linear_inputs},
    .reference = {linear_forward_reference, linear_params_reference, linear_inputs_reference},
};
