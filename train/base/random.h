/* SPDX-License-Identifier: Apache-2.0
 *
 * random: the 32-bit Mersenne Twister (Matsumoto and Nishimura, 1998), seeded and read as
 * PyTorch's CPU generator does, so that orders and initial weights are equal bit for bit.
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

/** torch.manual_seed(seed): the low 32 bits count. */
void random_seed(train_random *random, uint64_t seed);

/** @return the next 32 random bits. */
uint32_t random_u32(train_random *random);

/** torch.Tensor.uniform_(low, high) of one float32. */
float random_uniform(train_random *random, float low, float high);

/** torch.Tensor.normal_(0, deviation) of @p count float32, to their last digits; fewer than 16 are
 *  the first of 16. */
void random_normal(train_random *random, float *values, size_t count, float deviation);

/** Leaves the generator as random_normal() of @p count numbers does. */
void random_skip_normal(train_random *random, size_t count);

#endif
