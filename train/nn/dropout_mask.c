/* SPDX-License-Identifier: Apache-2.0
 * Draws one 32-bit word of the Philox generator for each element. An element is dropped if its word
 * is below probability · 2^32. */
#include "dropout_mask.h"

#include <math.h>

#include "philox.h"

void dropout_mask_draw(const op_run *run, size_t i, size_t begin, size_t end, uint8_t *keep)
{
    const uint32_t key[2] = {(uint32_t)run->random.seed, (uint32_t)(run->random.seed >> 32)};
    const uint32_t sample = run->random.samples != NULL ? run->random.samples[i] : (uint32_t)i;
    const double dropped = ldexp(run->use->settings.probability, 32);
    for (size_t at = begin; at < end;) {
        const uint32_t counter[4] = {(uint32_t)(at / 4), run->use->number, sample,
                                     run->random.step};
        uint32_t bits[4];
        philox(counter, key, bits);
        for (size_t k = at % 4; k < 4 && at < end; k++, at++)
            keep[at - begin] = (double)bits[k] >= dropped;
    }
}

float dropout_mask_scale(const op_use *use)
{
    return (float)(1.0 / (1.0 - use->settings.probability));
}
