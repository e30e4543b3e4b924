/* SPDX-License-Identifier: Apache-2.0
 * dropout: in training, sets each element to 0 with the given probability and divides the others by
 * 1 - probability, as torch.nn.Dropout does; otherwise out = in. Unlike in PyTorch, dropout_mask.h
 * decides which elements are dropped.
 *     in, out [batch, any]  saved [batch, any] bytes: 1 where an element was kept */
#include <string.h>

#include "dropout_mask.h"
#include "errors.h"

static ring_status dropout_shape(op_use *use)
{
    const double probability = use->settings.probability;
    if (!(probability >= 0.0 && probability < 1.0))
        return train_fail(RING_ERR_CONFIG, "dropout takes a probability from 0 to below 1, not %g",
                          probability);
    use->out = use->in[0];
    use->saved_bytes = shape_count(&use->out);
    return RING_OK;
}

/* Draws keep (elements of a sample) for sample @p i. If a tensor rank has only some features of
 * each row, it draws the part of the whole row's mask at these features. */
static void draw_mask(const op_run *run, size_t i, uint8_t *keep)
{
    const op_shape *out = &run->use->out;
    const op_settings *settings = &run->use->settings;
    const size_t width = shape_width(out), rows = shape_rows(out);
    if (settings->row_width == 0) {
        dropout_mask_draw(run, i, 0, rows * width, keep);
        return;
    }
    for (size_t r = 0; r < rows; r++) {
        const size_t begin = r * settings->row_width + settings->row_first;
        dropout_mask_draw(run, i, begin, begin + width, keep + r * width);
    }
}

/* For one sample: to (count) = from (count) · keep (count) / (1 - probability) */
static void apply(const op_run *run, float *to, const float *from, const uint8_t *keep)
{
    const float scale = dropout_mask_scale(run->use);
    const size_t count = shape_count(&run->use->out);
    for (size_t j = 0; j < count; j++)
        to[j] = keep[j] ? from[j] * scale : 0.0F;
}

static void dropout_forward(const op_run *run)
{
    const size_t count = shape_count(&run->use->out);
    if (!run->training) {
        if (run->out != run->in[0])
            memcpy(run->out, run->in[0], run->batch * count * sizeof(float));
        return;
    }
    for (size_t i = 0; i < run->batch; i++) {
        draw_mask(run, i, run->saved + i * count);
        apply(run, run->out + i * count, run->in[0] + i * count, run->saved + i * count);
    }
}

static void dropout_inputs(const op_run *run)
{
    const size_t count = shape_count(&run->use->out);
    for (size_t i = 0; i < run->batch; i++)
        apply(run, run->in_grad[0] + i * count, run->out_grad + i * count, run->saved + i * count);
}

const nn_op op_dropout = {
    .name = "dropout",
    .inputs = 1,
    .takes = TAKES_PROBABILITY,
    .in_place = true,
    .shape = dropout_shape,
    .fast = {dropout_forward, NULL, dropout_inputs},
};
