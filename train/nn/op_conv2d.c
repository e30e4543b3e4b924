/* SPDX-License-Identifier: Apache-2.0
 * conv2d: computes the cross-correlation with square kernels, as torch.nn.Conv2d does. The
 * functions of conv.h do the computation. in [batch, channels, rows, columns]  weight [outputs,
 * channels, kernel, kernel] bias [outputs]  out [batch, outputs, out_rows, out_columns] */
#include "conv.h"
#include "errors.h"
#include "window.h"

static ring_status conv2d_shape(op_use *use)
{
    RING_TRY(window_check(use));
    const op_window window = window_of(use);
    const size_t outputs = use->settings.outputs, kernel = window.kernel;
    const size_t fan_in = window.channels * kernel * kernel;
    use->out = (op_shape){.dim = {outputs, window.out_rows, window.out_columns}, .dims = 3};
    use->tensors[0] = (op_tensor){.name = "weight",
                                  .shape = {outputs, window.channels, kernel, kernel},
                                  .dims = 4,
                                  .group = GROUP_DECAY,
                                  .fan_in = fan_in};
    use->tensors[1] = (op_tensor){
        .name = "bias", .shape = {outputs}, .dims = 1, .group = GROUP_NO_DECAY, .fan_in = fan_in};
    use->tensor_count = 2;
    use->scratch_bytes = conv_scratch_bytes(use);
    return RING_OK;
}

const nn_op op_conv2d = {
    .name = "conv2d",
    .inputs = 1,
    .takes = TAKES_OUTPUTS | TAKES_WINDOW,
    .shape = conv2d_shape,
    .fast = {conv_forward, conv_params, conv_inputs},
    .prepare = conv_prepare,
    .release = conv_release,
};
