/* SPDX-License-Identifier: Apache-2.0
 * Computes all numbers from each rank's micro-batch and its samples in an epoch. */
#include "shares.h"

#include <stdlib.h>

#include "errors.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* @return whole / part, rounded up. */
static size_t parts(size_t whole, size_t part)
{
    return (whole + part - 1) / part;
}

/* @return the samples of a rank in a full update. */
static size_t window(const data_shares *shares, int rank)
{
    return shares->micro[rank] * shares->accumulation;
}

ring_status shares_create(data_shares *shares, int ranks, size_t micro, size_t samples,
                          size_t accumulation)
{
    const size_t bytes = (size_t)ranks * sizeof(size_t);
    *shares = (data_shares){.ranks = ranks, .accumulation = accumulation};
    RING_TRY(train_alloc((void **)&shares->micro, bytes, "shares of ranks"));
    RING_TRY(train_alloc((void **)&shares->samples, bytes, "shares of ranks"));
    RING_TRY(train_alloc((void **)&shares->taken, bytes, "shares of ranks"));
    for (int r = 0; r < ranks; r++) {
        shares->micro[r] = micro;
        shares->samples[r] = samples;
    }
    return RING_OK;
}

void shares_free(data_shares *shares)
{
    free(shares->micro);
    free(shares->samples);
    free(shares->taken);
    *shares = (data_shares){0};
}

void shares_deal(data_shares *shares, size_t samples)
{
    /* Each whole round gives every rank a micro-batch. In the last, incomplete round the ranks take
     * their micro-batches in order until the samples run out. */
    size_t round = 0;
    for (int r = 0; r < shares->ranks; r++)
        round += shares->micro[r];
    size_t rest = samples % round;
    for (int r = 0; r < shares->ranks; r++) {
        const size_t last = least(rest, shares->micro[r]);
        shares->samples[r] = samples / round * shares->micro[r] + last;
        rest -= last;
    }
}

void shares_settle(data_shares *shares, bool drop_last, bool shortest)
{
    size_t fewest = SIZE_MAX;
    for (int r = 0; r < shares->ranks; r++) {
        if (drop_last)
            shares->samples[r] -= shares->samples[r] % shares->micro[r];
        fewest = least(fewest, shares_updates(shares, r));
    }
    for (int r = 0; shortest && r < shares->ranks; r++)
        shares->samples[r] = least(shares->samples[r], fewest * window(shares, r));
    shares->updates = 0;
    for (int r = 0; r < shares->ranks; r++) {
        const size_t updates = shares_updates(shares, r);
        if (updates > shares->updates)
            shares->updates = updates;
    }
}

size_t shares_updates(const data_shares *shares, int rank)
{
    return parts(shares->samples[rank], window(shares, rank));
}

size_t shares_begin(const data_shares *shares, int rank, size_t update)
{
    return least(shares->taken[rank] + update * window(shares, rank), shares->samples[rank]);
}

size_t shares_taken(const data_shares *shares, int rank, size_t update)
{
    return shares_begin(shares, rank, update + 1) - shares_begin(shares, rank, update);
}

size_t shares_until(const data_shares *shares, size_t updates)
{
    size_t sum = 0;
    for (int r = 0; r < shares->ranks; r++)
        sum += shares_begin(shares, r, updates);
    return sum;
}

size_t shares_left(const data_shares *shares)
{
    size_t most = 0;
    for (int r = 0; r < shares->ranks; r++) {
        const size_t left = parts(shares->samples[r] - shares->taken[r], window(shares, r));
        most = left > most ? left : most;
    }
    return most;
}

void shares_rewind(data_shares *shares)
{
    for (int r = 0; r < shares->ranks; r++)
        shares->taken[r] = 0;
}

/* A run can resume at any point where the ranks together have taken the first samples of the
 * epoch's order. If samples are dealt one by one, each multiple of the number of ranks is such a
 * point. If micro-batches are dealt, only the ends of updates are such points. */
size_t shares_resume(data_shares *shares, size_t taken, bool in_turn)
{
    const size_t ranks = (size_t)shares->ranks;
    size_t updates = 0;
    shares_rewind(shares);
    while (updates < shares->updates && shares_until(shares, updates + 1) <= taken)
        updates++;
    for (int r = 0; r < shares->ranks; r++)
        shares->taken[r] = in_turn ? least(taken / ranks, shares->samples[r])
                                   : shares_begin(shares, r, updates);
    return taken - shares_until(shares, 0);
}

size_t shares_total(const data_shares *shares, size_t update)
{
    size_t total = 0;
    for (int r = 0; r < shares->ranks; r++)
        total += shares_taken(shares, r, update);
    return total;
}

int shares_micro_batches(const data_shares *shares, size_t update)
{
    size_t most = 0;
    for (int r = 0; r < shares->ranks; r++) {
        const size_t count = parts(shares_taken(shares, r, update), shares->micro[r]);
        most = count > most ? count : most;
    }
    return (int)most;
}
