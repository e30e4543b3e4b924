/* SPDX-License-Identifier: Apache-2.0
 * Implements MT19937. Each word of the state is tempered when it is read; after all words have been
 * read, the whole state is twisted at once. */
#include "random.h"

#include <math.h>
#include <string.h>

enum { SHIFT = 397, BLOCK = 16 };

void random_seed(train_random *random, uint64_t seed)
{
    uint32_t word = (uint32_t)seed;
    for (uint32_t i = 0; i < RANDOM_WORDS; i++) {
        random->state[i] = word;
        word = 1812433253U * (word ^ (word >> 30)) + i + 1;
    }
    random->next = RANDOM_WORDS;
}

static void twist(uint32_t *state)
{
    for (int i = 0; i < RANDOM_WORDS; i++) {
        const uint32_t y = (state[i] & 0x80000000U) | (state[(i + 1) % RANDOM_WORDS] & 0x7fffffffU);
        state[i] = state[(i + SHIFT) % RANDOM_WORDS] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfU : 0);
    }
}

uint32_t random_u32(train_random *random)
{
    if (random->next == RANDOM_WORDS) {
        twist(random->state);
        random->next = 0;
    }
    uint32_t y = random->state[random->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680U;
    y ^= (y << 15) & 0xefc60000U;
    return y ^ (y >> 18);
}

float random_uniform(train_random *random, float low, float high)
{
    const float unit = (float)(random_u32(random) & 0xffffffU) * 0x1p-24F;
    return fmaf(unit, high - low, low); /* fused, as in PyTorch's binaries */
}

/* Transforms a block of uniform numbers to normal numbers in place (Box and Muller). Each number in
 * the first half of the block gives a length, and its partner in the second half an angle. Computes
 * in float64, so that the results do not depend on the libm. */
static void make_normal(float block[BLOCK], float deviation)
{
    for (int i = 0; i < BLOCK / 2; i++) {
        const double length = sqrt(-2.0 * log(1.0 - (double)block[i]));
        const double angle = 2.0 * M_PI * (double)block[i + BLOCK / 2];
        block[i] = (float)(length * cos(angle) * (double)deviation);
        block[i + BLOCK / 2] = (float)(length * sin(angle) * (double)deviation);
    }
}

static void draw_block(train_random *random, float block[BLOCK], float deviation)
{
    for (int i = 0; i < BLOCK; i++)
        block[i] = random_uniform(random, 0, 1);
    make_normal(block, deviation);
}

void random_skip_normal(train_random *random, size_t count)
{
    const size_t again = count < BLOCK ? BLOCK - count : count % BLOCK != 0 ? BLOCK : 0;
    for (size_t i = 0; i < count + again; i++)
        random_u32(random);
}

/* Works like PyTorch: first draws uniform numbers for the whole array, then transforms them block
 * by block. If the count is not a multiple of BLOCK, draws and transforms the last BLOCK numbers
 * again. */
void random_normal(train_random *random, float *values, size_t count, float deviation)
{
    float few[BLOCK];
    if (count < BLOCK) {
        draw_block(random, few, deviation);
        memcpy(values, few, count * sizeof *values);
        return;
    }
    for (size_t i = 0; i < count; i++)
        values[i] = random_uniform(random, 0, 1);
    for (size_t i = 0; i + BLOCK <= count; i += BLOCK)
        make_normal(values + i, deviation);
    if (count % BLOCK != 0)
        draw_block(random, values + count - BLOCK, deviation);
}
