/* SPDX-License-Identifier: Apache-2.0
 *
 * sampler: decides which samples a rank trains on, and in which order, with the same result as
 * PyTorch's DistributedSampler. The samples are permuted with the seed + epoch, or keep the order
 * of the data set. To divide them evenly, the first samples are repeated or the last ones are left
 * out. Then the samples are dealt to the ranks in turn.
 */
#ifndef TRAIN_SAMPLER_H
#define TRAIN_SAMPLER_H

#include "shares.h"

/** DistributedSampler's arguments. */
typedef struct sampler_rule {
    uint64_t seed;
    bool in_order;  /* shuffle = False: keep the order in which samples are stored */
    bool drop_last; /* leave out the remainder of the division by ranks; no effect with shares */
} sampler_rule;

typedef struct train_sampler {
    size_t samples; /* number of samples in the data set */
    size_t ranks, rank;
    size_t per_rank; /* samples of this rank in an epoch: its share, or samples / ranks rounded */
    sampler_rule rule;
    uint32_t *permutation;     /* [samples] the order of the current epoch */
    uint32_t *order;           /* [per_rank] this rank's samples in the current epoch */
    const data_shares *shares; /* borrowed; NULL: equal shares, as PyTorch makes them */
    bool contiguous;           /* each share is contiguous in the permutation */
} train_sampler;

/** Makes equal shares. Free with sampler_destroy() whatever the result. */
ring_status sampler_create(train_sampler *sampler, size_t samples, int ranks, int rank,
                           const sampler_rule *rule);

/** Makes the given shares. Samples are dealt in rounds of one micro-batch for each rank, so that
 * the samples of an update are contiguous in the permutation. If @p contiguous is set, each rank's
 * share is contiguous instead. Free with sampler_destroy() whatever the result.
 *  @param shares  borrowed; after shares_settle(), and with at most @p samples in all */
ring_status sampler_create_shares(train_sampler *sampler, size_t samples, const data_shares *shares,
                                  int rank, const sampler_rule *rule, bool contiguous);
void sampler_destroy(train_sampler *sampler);

/** Fills sampler->order for an epoch, like DistributedSampler.set_epoch(). */
void sampler_set_epoch(train_sampler *sampler, uint64_t epoch);

/** @return the number of samples that an epoch repeats so that all ranks take equally many. */
size_t sampler_repeated(const train_sampler *sampler);

/** @return the number of samples that an epoch leaves out for the same reason. */
size_t sampler_left_out(const train_sampler *sampler);

#endif
