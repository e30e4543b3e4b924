/* SPDX-License-Identifier: Apache-2.0
 * MT19937: seeding, the twist of all words at once, tempering. */
#include "random.h"

#include <math.h>

enum { SHIFT = 397 };

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
    return fmaf(unit, high - low, low); /* fused, as PyTorch's build computes it */
}
