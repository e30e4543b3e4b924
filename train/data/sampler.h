/* SPDX-License-Identifier: Apache-2.0
 *
 * sampler: which samples a rank trains on, in which order. Equal, index for index, to
 * PyTorch's DistributedSampler: a permutation drawn from seed + epoch, or the order of the data
 * set; its head repeated at the end until the ranks divide it, or its tail left out; dealt in turn.
 */
#ifndef TRAIN_SAMPLER_H
#define TRAIN_SAMPLER_H

#include "shares.h"

/** DistributedSampler's arguments. */
typedef struct sampler_rule {
    uint64_t seed;
    bool in_order;  /* shuffle = False: each epoch takes the samples as they are stored */
    bool drop_last; /* of what the ranks do not divide; not of shares, which leave nothing over */
} sampler_rule;

typedef struct train_sampler {
    size_t samples; /* in the data set */
    size_t ranks, rank;
    size_t per_rank; /* what this rank takes an epoch: samples / ranks, rounded up or down, or its
                        share */
    sampler_rule rule;
    uint32_t *permutation;     /* [samples] of the current epoch */
    uint32_t *order;           /* [per_rank], this rank's part of it */
    const data_shares *shares; /* borrowed; NULL: dealt as PyTorch does */
    bool contiguous;           /* a share lies together in the permutation */
} train_sampler;

ring_status sampler_create(train_sampler *sampler, size_t samples, int ranks, int rank,
                           const sampler_rule *rule);

/** The same for ranks with shares of their own, which are dealt in rounds of a micro-batch a rank:
 *  what all ranks take in an update follows each other in the permutation. Or, with @p contiguous,
 *  each rank's share does. @param shares  borrowed; at most @p samples in all, settled. */
ring_status sampler_create_shares(train_sampler *sampler, size_t samples, const data_shares *shares,
                                  int rank, const sampler_rule *rule, bool contiguous);
void sampler_destroy(train_sampler *sampler);

/** DistributedSampler.set_epoch(): fills sampler->order. */
void sampler_set_epoch(train_sampler *sampler, uint64_t epoch);

/** @return how many of an epoch's samples are repeats, so that all ranks take equally many. */
size_t sampler_repeated(const train_sampler *sampler);

/** @return how many samples an epoch leaves out for the same reason. */
size_t sampler_left_out(const train_sampler *sampler);

#endif
