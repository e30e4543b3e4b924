/* SPDX-License-Identifier: Apache-2.0
 *
 * shares: computes how many samples each rank takes in each update of an epoch. Micro-batches and
 * parts of the data may differ between ranks. Every rank knows all of them, so that all agree on
 * the micro-batches and samples of an update without communication.
 */
#ifndef TRAIN_SHARES_H
#define TRAIN_SHARES_H

#include <ring/ring.h>
#include <stdbool.h>

typedef struct data_shares {
    int ranks;
    size_t accumulation; /* micro-batches of an update */
    size_t *micro;       /* [ranks] samples of a micro-batch */
    size_t *samples;     /* [ranks] samples of an epoch */
    size_t *taken;       /* [ranks] of those, taken before update 0; 0 unless resumed */
    size_t updates;      /* of a whole epoch */
} data_shares;

/** Makes equal shares. Free with shares_free() whatever the result.
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status shares_create(data_shares *shares, int ranks, size_t micro, size_t samples,
                          size_t accumulation);
void shares_free(data_shares *shares);

/** Deals @p samples in rounds of one micro-batch for each rank, so that all ranks make the same
 *  number of updates and no sample is left out or repeated. Call it after changing shares->micro.
 */
void shares_deal(data_shares *shares, size_t samples);

/** Counts the updates of an epoch. Call it after changing shares->samples.
 *  @param drop_last  leave out each rank's last micro-batch if it is short
 *  @param shortest   end an epoch with the rank that has the fewest updates; else ranks that have
 *                    no samples left wait for the others. */
void shares_settle(data_shares *shares, bool drop_last, bool shortest);

/** Moves to the point where all ranks together have taken @p taken samples of an epoch, or the last
 *  possible one before it. @param in_turn  the shares are equal and dealt sample by sample
 *  @return the number of samples that will be taken again. */
size_t shares_resume(data_shares *shares, size_t taken, bool in_turn);

/** Moves to the start of an epoch. */
void shares_rewind(data_shares *shares);

/** @return updates from the current point to the end of the epoch. */
size_t shares_left(const data_shares *shares);

/** @return samples of the epoch that all ranks have taken after @p updates more updates. */
size_t shares_until(const data_shares *shares, size_t updates);

/** @return updates in which @p rank has samples. */
size_t shares_updates(const data_shares *shares, int rank);

/** @return samples of the epoch that @p rank has taken before @p update. */
size_t shares_begin(const data_shares *shares, int rank, size_t update);

/** @return samples that @p rank takes in @p update (from 0); 0 after its last one. */
size_t shares_taken(const data_shares *shares, int rank, size_t update);

/** @return samples that all ranks take in @p update. */
size_t shares_total(const data_shares *shares, size_t update);

/** @return micro-batches of @p update: the most that any rank has. */
int shares_micro_batches(const data_shares *shares, size_t update);

#endif
