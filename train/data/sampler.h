/* SPDX-License-Identifier: Apache-2.0
 *
 * sampler: decides which samples a rank trains on, and in which order. The result is, index for
 * index, that of PyTorch's DistributedSampler: a permutation drawn from seed + epoch (or the order
 * of the data set), whose head is repeated or whose tail is left out so that the ranks divide it,
 * dealt to the ranks in turn.
 */
#ifndef TRAIN_SAMPLER_H
#define TRAIN_SAMPLER_H

#include "shares.h"

/** DistributedSampler's arguments. */
typedef struct sampler_rule {
    uint64_t seed;
    bool in_order;  /* shuffle = False: each epoch takes the samples as they are stored */
    bool drop_last; /* leave out the remainder of the division by ranks; ignored with shares */
} sampler_rule;

typedef struct train_sampler {
    size_t samples; /* in the data set */
    size_t ranks, rank;
    size_t per_rank; /* samples of this rank in an epoch: samples / ranks, rounded up or down, or
                        its share */
    sampler_rule rule;
    uint32_t *permutation;     /* [samples] of the current epoch */
    uint32_t *order;           /* [per_rank], this rank's part of it */
    const data_shares *shares; /* borrowed; NULL: dealt as PyTorch does */
    bool contiguous;           /* each share is contiguous in the permutation */
} train_sampler;

ring_status sampler_create(train_sampler *sampler, size_t samples, int ranks, int rank,
                           const sampler_rule *rule);

/** The same for ranks with shares of their own. They are dealt in rounds of one micro-batch for
 * each rank, so that the samples of an update are contiguous in the permutation; with @p
 * contiguous, each rank's share is contiguous instead.
 *  @param shares  borrowed; settled, and at most @p samples in all */
ring_status sampler_create_shares(train_sampler *sampler, size_t samples, const data_shares *shares,
                                  int rank, const sampler_rule *rule, bool contiguous);
void sampler_destroy(train_sampler *sampler);

/** DistributedSampler.set_epoch(): fills sampler->order. */
void sampler_set_epoch(train_sampler *sampler, uint64_t epoch);

/** @return the number of samples that an epoch repeats so that all ranks take equally many. */
size_t sampler_repeated(const train_sampler *sampler);

/** @return the number of samples that an epoch leaves out for the same reason. */
size_t sampler_left_out(const train_sampler *sampler);

#endif
