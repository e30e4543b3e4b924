/* SPDX-License-Identifier: Apache-2.0
 * channel_out: sends a work's messages to its peers, or queues them until a link has room. */
#ifndef RING_CORE_CHANNEL_OUT_H
#define RING_CORE_CHANNEL_OUT_H

#include "comm.h"

/** Allocates records for queued messages in advance, so that calls rarely have to. */
enum { SPARE_POSTS = 32 };
ring_status channels_keep_posts(ring_comm *comm, int count);

/** Sends a message, or queues a copy of its record until the link has room. */
ring_status channel_post(posted *message);
/** Sends as much of an eager or relayed message as the link has room for. @return RING_IN_PROGRESS
 *  if it is not the next in order or the link is full: the caller keeps @p message and retries. */
ring_status channel_send(posted *message);
/** Sends the first segments of a message while a fold still computes the others: the segments
 *  within the first @p ready bytes, as far as the link has room, and never the last segment. Adds
 *  their bytes to @p message->done. channel_post() sends the rest. */
ring_status channel_send_ahead(posted *message, size_t ready);
/** Reserves room for the next carried frame of a relayed message. @return RING_IN_PROGRESS as
 *  channel_send() does. */
ring_status channel_reserve(channel *c, uint64_t number, void **room);
/** Sends bytes [done, done + bytes) of a message from the room that was reserved.
 *  @param total  bytes of the message. */
ring_status channel_send_room(work *w, int32_t to, uint64_t number, const void *room, size_t done,
                              size_t bytes, size_t segment, size_t total);
/** Sends the queued messages as far as the link has room. @param[out] moved  set to true if bytes
 *  were sent. */
ring_status channel_flush(channel *c, bool *moved);
/** @return true if the chunks of the work's first @p messages to @p peer have been released. */
bool channel_is_free(const work *work, int32_t peer, uint64_t messages);
/** Drops the waiting works and queued messages of a communicator that has ended, and stops using
 *  their memory. */
void channel_clear(channel *c);

#endif
