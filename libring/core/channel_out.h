/* SPDX-License-Identifier: Apache-2.0
 * channel_out: messages that leave. */
#ifndef RING_CORE_CHANNEL_OUT_H
#define RING_CORE_CHANNEL_OUT_H

#include "comm.h"

/** Makes records for queued messages in advance, so that few calls allocate any. */
enum { SPARE_POSTS = 32 };
ring_status channels_keep_posts(ring_comm *comm, int count);

/** Sends a message, or queues a copy of its record until the link takes it. */
ring_status channel_post(posted *message);
/** Sends as much of an eager or relayed message as the link takes now. RING_IN_PROGRESS: it is not
 *  next in the order, or no room; the caller keeps @p message and calls again. */
ring_status channel_send(posted *message);
/** Sends whole segments of a message of which @p ready bytes are there, except its last one, as far
 *  as the link takes them: @p message->done counts them. channel_post() sends the rest. */
ring_status channel_send_ahead(posted *message, size_t ready);
/** Room for the next carried frame of a relayed message; RING_IN_PROGRESS as above. */
ring_status channel_reserve(channel *c, uint64_t number, void **room);
/** Sends a frame from the room that was reserved: bytes [done, done + bytes) of a message.
 *  @param total  bytes of it. */
ring_status channel_send_room(work *w, int32_t to, uint64_t number, const void *room, size_t done,
                              size_t bytes, size_t segment, size_t total);
/** Sends the queued messages, as far as the link takes them. */
ring_status channel_flush(channel *c, bool *moved);
/** @return true once the chunks of the work's first @p messages to @p peer are released. */
bool channel_is_free(const work *work, int32_t peer, uint64_t messages);
/** Drops waiting works and queued messages, which have ended; their memory is not used any more. */
void channel_clear(channel *c);

#endif
