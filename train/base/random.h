/* SPDX-License-Identifier: Apache-2.0
 *
 * random: implements the 32-bit Mersenne Twister (Matsumoto and Nishimura, 1998). It is seeded and
 * read in the same way as PyTorch's CPU generator, so that the order of samples and the initial
 * weights are equal bit for bit.
 */
#ifndef TRAIN_RANDOM_H
#define TRAIN_RANDOM_H

#include <stddef.h>
#include <stdint.h>

enum { RANDOM_WORDS = 624 };

typedef struct train_random {
    uint32_t state[RANDOM_WORDS];
    int next; /* index of the next word to read; RANDOM_WORDS: twist the state first */
} train_random;

/** Seeds the generator like torch.manual_seed(seed), which uses only the low 32 bits. */
void random_seed(train_random *random, uint64_t seed);

/** @return the next 32 random bits. */
uint32_t random_u32(train_random *random);

/** @return a number from [low, high), like torch.Tensor.uniform_(low, high) for one float32. */
float random_uniform(train_random *random, float low, float high);

/** Draws @p count numbers like torch.Tensor.normal_(0, deviation) in float32, equal except for the
 * last digits. If @p count is below 16, they are the first numbers of a block of 16. */
void random_normal(train_random *random, float *values, size_t count, float deviation);

/** Advances the generator as random_normal() does for @p count numbers. */
void random_skip_normal(train_random *random, size_t count);

#endif
