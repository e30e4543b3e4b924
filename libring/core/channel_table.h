/* SPDX-License-Identifier: Apache-2.0
 * channel_table: finds and creates the channels of a communicator. A channel exists from the first
 * call that uses it until the communicator is destroyed. */
#ifndef RING_CORE_CHANNEL_TABLE_H
#define RING_CORE_CHANNEL_TABLE_H

#include "channel.h"

/** Channels used so far, found by traffic, index and rank. */
typedef struct channel_table {
    channel **slots;
    size_t capacity, count;
    channel **active; /* those that engine turns visit, see channel_activate() */
    int32_t active_count;
} channel_table;

/** @return the channel to @p rank; NULL if it was not used so far. */
channel *channel_find(const ring_comm *comm, enum channel_traffic traffic, int32_t index, int rank);
/** Finds the channel, and creates it if it does not exist. */
ring_status channel_get(ring_comm *comm, enum channel_traffic traffic, int32_t index, int rank,
                        channel **out);
/** Iterates over the channels. @param[in,out] at  the position, 0 at first.
 *  @return the next channel; NULL after the last one. */
channel *channels_next(const ring_comm *comm, size_t *at);
/** Frees all channels and closes their links. */
void channels_free(ring_comm *comm);

#endif
