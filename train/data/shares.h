/* SPDX-License-Identifier: Apache-2.0
 *
 * shares: computes how many samples each rank takes in each update of an epoch. Micro-batches and
 * parts of the data may differ between ranks. Every rank has the numbers of all ranks, so no
 * communication is needed to agree on the micro-batches and samples of an update.
 */
#ifndef TRAIN_SHARES_H
#define TRAIN_SHARES_H

#include <ring/ring.h>
#include <stdbool.h>

typedef struct data_shares {
    int ranks;
    size_t accumulation; /* micro-batches in an update */
    size_t *micro;       /* [ranks] samples in a micro-batch */
    size_t *samples;     /* [ranks] samples in an epoch */
    size_t *taken;       /* [ranks] samples taken before update 0; 0 unless resumed */
    size_t updates;      /* updates in a whole epoch */
} data_shares;

/** Makes equal shares. Free with shares_free() whatever the result.
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status shares_create(data_shares *shares, int ranks, size_t micro, size_t samples,
                          size_t accumulation);
void shares_free(data_shares *shares);

/** Deals @p samples in rounds of one micro-batch for each rank, so that all ranks make the same
 *  number of updates and no sample is left out or repeated. Call it after a change of
 *  shares->micro. */
void shares_deal(data_shares *shares, size_t samples);

/** Counts the updates of an epoch. Call it after a change of shares->samples.
 *  @param drop_last  leave out each rank's last micro-batch if it is incomplete
 *  @param shortest   end an epoch when the rank with the fewest updates has finished. Otherwise
 * ranks that have no samples left wait for the others. */
void shares_settle(data_shares *shares, bool drop_last, bool shortest);

/** Moves to the point of an epoch where all ranks together have taken @p taken samples, or to the
 *  last possible point before it. @param in_turn  shares are equal, and dealt sample by sample
 *  @return the number of samples between this point and @p taken, which will be taken again. */
size_t shares_resume(data_shares *shares, size_t taken, bool in_turn);

/** Moves to the start of an epoch. */
void shares_rewind(data_shares *shares);

/** @return the number of updates from the current point to the end of the epoch. */
size_t shares_left(const data_shares *shares);

/** @return the number of samples of the epoch that all ranks will have taken once @p updates more
 *  updates are done. */
size_t shares_until(const data_shares *shares, size_t updates);

/** @return the number of updates of an epoch in which @p rank has samples. */
size_t shares_updates(const data_shares *shares, int rank);

/** @return the samples of the epoch that @p rank has taken before @p update, which is counted from
 *  the current point, as in the functions below. */
size_t shares_begin(const data_shares *shares, int rank, size_t update);

/** @return the samples that @p rank takes in @p update (from 0); 0 if it has no samples left. */
size_t shares_taken(const data_shares *shares, int rank, size_t update);

/** @return the samples that all ranks together take in @p update. */
size_t shares_total(const data_shares *shares, size_t update);

/** @return the micro-batches of @p update: those of the rank that has the most. */
int shares_micro_batches(const data_shares *shares, size_t update);

#endif
