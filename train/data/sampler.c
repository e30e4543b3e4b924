/* SPDX-License-Identifier: Apache-2.0
 * Draws a permutation as torch.randperm does on the CPU, and deals it to the ranks. */
#include "sampler.h"

#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "random.h"

static ring_status create(train_sampler *sampler, size_t samples, int ranks, int rank,
                          const sampler_rule *rule, size_t per_rank)
{
    if (samples == 0 ||
        samples >= UINT32_MAX / 20) /* PyTorch draws larger permutations in another way */
        return train_fail(RING_ERR_ARGUMENT, "cannot shuffle %zu sample%s; give from 1 to %u",
                          samples, plural(samples), UINT32_MAX / 20 - 1);
    sampler->samples = samples;
    sampler->ranks = (size_t)ranks;
    sampler->rank = (size_t)rank;
    sampler->rule = *rule;
    sampler->per_rank = per_rank;
    RING_TRY(train_alloc((void **)&sampler->permutation, samples * sizeof(uint32_t),
                         "the permutation of samples"));
    return train_alloc((void **)&sampler->order, sampler->per_rank * sizeof(uint32_t),
                       "the order of samples");
}

ring_status sampler_create(train_sampler *sampler, size_t samples, int ranks, int rank,
                           const sampler_rule *rule)
{
    const bool has_rest = samples % (size_t)ranks != 0;
    *sampler = (train_sampler){0};
    return create(sampler, samples, ranks, rank, rule,
                  samples / (size_t)ranks + (has_rest && !rule->drop_last));
}

ring_status sampler_create_shares(train_sampler *sampler, size_t samples, const data_shares *shares,
                                  int rank, const sampler_rule *rule, bool contiguous)
{
    *sampler = (train_sampler){.shares = shares, .contiguous = contiguous};
    return create(sampler, samples, shares->ranks, rank, rule, shares->samples[rank]);
}

void sampler_destroy(train_sampler *sampler)
{
    free(sampler->permutation);
    free(sampler->order);
    memset(sampler, 0, sizeof *sampler);
}

/* Shuffles as torch.randperm does: swaps each value with a random one at or after its position. */
static void permute(uint32_t *values, size_t count, uint64_t seed)
{
    train_random random;
    random_seed(&random, seed);
    for (size_t i = 0; i + 1 < count; i++) {
        const size_t other = i + random_u32(&random) % (uint32_t)(count - i);
        const uint32_t value = values[i];
        values[i] = values[other];
        values[other] = value;
    }
}

/* Deals single samples to the ranks in turn, and begins again if the samples run out. */
static void deal_in_turn(train_sampler *sampler)
{
    for (size_t k = 0; k < sampler->per_rank; k++) {
        const size_t at = (k * sampler->ranks + sampler->rank) % sampler->samples;
        sampler->order[k] = sampler->permutation[at];
    }
}

/* Deals consecutive samples to each rank. */
static void deal_together(train_sampler *sampler)
{
    size_t before = 0;
    for (size_t r = 0; r < sampler->rank; r++)
        before += sampler->shares->samples[r];
    memcpy(sampler->order, sampler->permutation + before, sampler->per_rank * sizeof(uint32_t));
}

/* @return the samples of a rank in a round: a micro-batch, or fewer if its share has fewer left. */
static size_t round_share(const data_shares *shares, size_t rank, size_t round)
{
    const size_t micro = shares->micro[rank], all = shares->samples[rank], begin = round * micro;
    const size_t left = begin < all ? all - begin : 0;
    return left < micro ? left : micro;
}

/* Deals micro-batches to the ranks in rounds. */
static void deal_in_rounds(train_sampler *sampler)
{
    const uint32_t *from = sampler->permutation;
    size_t taken = 0;
    for (size_t round = 0; taken < sampler->per_rank; round++) {
        for (size_t r = 0; r < sampler->ranks; r++) {
            const size_t count = round_share(sampler->shares, r, round);
            if (r == sampler->rank) {
                memcpy(sampler->order + taken, from, count * sizeof(uint32_t));
                taken += count;
            }
            from += count;
        }
    }
}

void sampler_set_epoch(train_sampler *sampler, uint64_t epoch)
{
    for (size_t i = 0; i < sampler->samples; i++)
        sampler->permutation[i] = (uint32_t)i;
    if (!sampler->rule.in_order)
        permute(sampler->permutation, sampler->samples, sampler->rule.seed + epoch);
    if (sampler->shares == NULL)
        deal_in_turn(sampler);
    else if (sampler->contiguous)
        deal_together(sampler);
    else
        deal_in_rounds(sampler);
}

size_t sampler_repeated(const train_sampler *sampler)
{
    const size_t taken = sampler->per_rank * sampler->ranks;
    return sampler->shares == NULL && taken > sampler->samples ? taken - sampler->samples : 0;
}

size_t sampler_left_out(const train_sampler *sampler)
{
    const size_t taken = sampler->per_rank * sampler->ranks;
    return sampler->shares == NULL && taken < sampler->samples ? sampler->samples - taken : 0;
}
