/* SPDX-License-Identifier: Apache-2.0
 * Computes the sizes of windows, and rejects settings that do not fit the input. */
#include "window.h"

#include "errors.h"

ring_status window_check(const op_use *use)
{
    const op_settings *settings = &use->settings;
    const op_shape *in = &use->in[0];
    char text[SHAPE_TEXT_MAX];
    if (in->dims != 3)
        return train_fail(RING_ERR_CONFIG, "%s takes [channels, rows, columns], not %s",
                          use->op->name, shape_text(in, text));
    if (settings->kernel < 1 || settings->stride < 1)
        return train_fail(RING_ERR_CONFIG, "%s needs a kernel and a stride of at least 1",
                          use->op->name);
    const size_t pad = 2 * settings->padding;
    if (in->dim[1] + pad < settings->kernel || in->dim[2] + pad < settings->kernel)
        return train_fail(RING_ERR_CONFIG, "a kernel of %zu is larger than its input %s",
                          settings->kernel, shape_text(in, text));
    if (settings->padding >= settings->kernel)
        return train_fail(RING_ERR_CONFIG,
                          "a padding of %zu needs a kernel larger than that, not %zu",
                          settings->padding, settings->kernel);
    return RING_OK;
}

op_window window_of(const op_use *use)
{
    const op_settings *settings = &use->settings;
    const size_t *in = use->in[0].dim, pad = 2 * settings->padding;
    return (op_window){.channels = in[0],
                       .rows = in[1],
                       .columns = in[2],
                       .out_rows = (in[1] + pad - settings->kernel) / settings->stride + 1,
                       .out_columns = (in[2] + pad - settings->kernel) / settings->stride + 1,
                       .kernel = settings->kernel,
                       .stride = settings->stride,
                       .padding = settings->padding};
}

ring_status window_shape_pool(op_use *use)
{
    RING_TRY(window_check(use));
    if (2 * use->settings.padding > use->settings.kernel)
        return train_fail(RING_ERR_CONFIG, "a padding of %zu is more than half the kernel size %zu",
                          use->settings.padding, use->settings.kernel);
    const op_window window = window_of(use);
    use->out = (op_shape){.dim = {window.channels, window.out_rows, window.out_columns}, .dims = 3};
    return RING_OK;
}
