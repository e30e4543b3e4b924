/* SPDX-License-Identifier: Apache-2.0
 * channel_table: the channels that a communicator has used. */
#ifndef RING_CORE_CHANNEL_TABLE_H
#define RING_CORE_CHANNEL_TABLE_H

#include "channel.h"

/** Channels used so far, found by traffic, index and rank. */
typedef struct channel_table {
    channel **slots;
    size_t capacity, count;
    channel **active; /* those that the engine looks at, see channel_watch() */
    int32_t active_count;
} channel_table;

/** @return the channel to @p rank, NULL if none was used so far. */
channel *channel_find(const ring_comm *comm, enum channel_traffic traffic, int32_t index, int rank);
/** The same, made if need be. */
ring_status channel_get(ring_comm *comm, enum channel_traffic traffic, int32_t index, int rank,
                        channel **out);
/** Each channel, then NULL. @param[in,out] at  0 at first. */
channel *channels_next(const ring_comm *comm, size_t *at);
/** Closes their links, too. */
void channels_free(ring_comm *comm);

#endif
