/* SPDX-License-Identifier: Apache-2.0
 *
 * sampler: which samples a rank trains on, in which order. Equal, index for index, to
 * PyTorch's DistributedSampler (shuffle, drop_last false): a permutation drawn from
 * seed + epoch, its head repeated at the end until the ranks divide it, dealt out in turn.
 */
#ifndef TRAIN_SAMPLER_H
#define TRAIN_SAMPLER_H

#include <ring/ring.h>

typedef struct train_sampler {
    size_t samples; /* in the data set */
    size_t ranks, rank;
    size_t per_rank; /* ceil(samples / ranks): what each rank takes an epoch */
    uint64_t seed;
    uint32_t *permutation; /* [samples] of the current epoch */
    uint32_t *order;       /* [per_rank], this rank's part of it */
} train_sampler;

ring_status sampler_create(train_sampler *sampler, size_t samples, int ranks, int rank,
                           uint64_t seed);
void sampler_destroy(train_sampler *sampler);

/** DistributedSampler.set_epoch(): fills sampler->order. */
void sampler_set_epoch(train_sampler *sampler, uint64_t epoch);

/** @return how many of an epoch's samples are repeats, so that all ranks take equally many. */
size_t sampler_repeated(const train_sampler *sampler);

#endif
