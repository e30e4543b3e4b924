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
    int next;
} train_random;

/** torch.manual_seed(seed): only the low 32 bits are used. */
void random_seed(train_random *random, uint64_t seed);

/** @return the next 32 random bits. */
uint32_t random_u32(train_random *random);

/** torch.Tensor.uniform_(low, high) of one float32. */
float random_uniform(train_random *random, float low, float high);

/** torch.Tensor.normal_(0, deviation) of @p count float32, equal but for the last digits. Fewer
 * than 16 numbers are the first ones of a block of 16. */
void random_normal(train_random *random, float *values, size_t count, float deviation);

/** Advances the generator as random_normal() of @p count numbers does. */
void random_skip_normal(train_random *random, size_t count);

#endif
