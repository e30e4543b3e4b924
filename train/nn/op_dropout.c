/* SPDX-License-Identifier: Apache-2.0
 * dropout: in training each element is 0 with the given probability, else in / (1 - probability);
 * else out = in. As torch.nn.Dropout, but for which elements are dropped: that is a function of
 * seed, update, sample and place alone. So the losses of an update do not depend on how its
 * samples lie on ranks and micro-batches, and computing a batch again gives the same.
 *     in, out [batch, any]  saved [batch, any] bytes: 1 where an element was kept */
#include <math.h>
#include <string.h>

#include "errors.h"
#include "op.h"
#include "philox.h"

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

/* keep[j] of one sample; a word of the generator an element. */
static void draw_kept(const op_run *run, size_t i, uint8_t *keep)
{
    const size_t count = shape_count(&run->use->out);
    const uint32_t key[2] = {(uint32_t)run->random.seed, (uint32_t)(run->random.seed >> 32)};
    const uint32_t sample = run->random.samples != NULL ? run->random.samples[i] : (uint32_t)i;
    const double dropped = ldexp(run->use->settings.probability, 32);
    for (size_t j = 0; j < count; j += 4) {
        const uint32_t counter[4] = {(uint32_t)(j / 4), run->use->number, sample, run->random.step};
        uint32_t bits[4];
        philox(counter, key, bits);
        for (size_t k = 0; k < 4 && j + k < count; k++)
            keep[j + k] = (double)bits[k] >= dropped;
    }
}

/* to = from · keep / (1 - probability), one sample */
static void apply(const op_run *run, float *to, const float *from, const uint8_t *keep)
{
    const float scale = (float)(1.0 / (1.0 - run->use->settings.probability));
    const size_t count = shape_count(&run->use->out);
    for (size_t j = 0; j < count; j++)
        to[j] = keep[j] ? from[j] * scale : 0.0F;
}

static void dropout_forward_reference(const op_run *run)
{
    const size_t count = shape_count(&run->use->out);
    if (!run->training) {
        if (run->out != run->in[0])
            memcpy(run->out, run->in[0], run->batch * count * sizeof(float));
        return;
    }
    for (size_t i = 0; i < run->batch; i++) {
        draw_kept(run, i, run->saved + i * count);
        apply(run, run->out + i * count, run->in[0] + i * count, run->saved + i * count);
    }
}

static void dropout_inputs_reference(const op_run *run)
{
    const size_t count = shape_count(&run->use->out);
    for (size_t i = 0; i < run->batch; i++)
        apply(run, run->in_delta[0] + i * count, run->out_delta + i * count,
              run->saved + i * count);
}

const nn_op op_dropout = {
    .name = "dropout",
    .inputs = 1,
    .takes = TAKES_PROBABILITY,
    .in_place = true,
    .shape = dropout_shape,
    .fast = {dropout_forward_reference, NULL, dropout_inputs_reference},
    .reference = {dropout_forward_reference, NULL, dropout_inputs_reference},
};
