/* SPDX-License-Identifier: Apache-2.0
 * Runs the ten rounds of the paper. Each round multiplies two of the four words, and combines the
 * halves of the products with the other two words and the key. */
#include "philox.h"

#include <string.h>

enum { ROUNDS = 10 };

static void mix_round(uint32_t word[4], const uint32_t key[2])
{
    const uint64_t low = (uint64_t)0xd2511f53U * word[0], high = (uint64_t)0xcd9e8d57U * word[2];
    const uint32_t first = (uint32_t)(high >> 32) ^ word[1] ^ key[0];
    const uint32_t third = (uint32_t)(low >> 32) ^ word[3] ^ key[1];
    word[0] = first;
    word[1] = (uint32_t)high;
    word[2] = third;
    word[3] = (uint32_t)low;
}

void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t bits[4])
{
    uint32_t round_key[2] = {key[0], key[1]};
    memcpy(bits, counter, 4 * sizeof *bits);
    for (int round = 0; round < ROUNDS; round++) {
        mix_round(bits, round_key);
        round_key[0] += 0x9e3779b9U;
        round_key[1] += 0xbb67ae85U;
    }
}
