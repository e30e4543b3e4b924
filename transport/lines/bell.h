/* SPDX-License-Identifier: Apache-2.0
 *
 * bell: implements the socket over which the two ends of a link wake each other. All links of a
 * pair of ranks share one bell, so that more communicators need no more descriptors. Each link is
 * opened over a socket of its own. An end that already has a bell to the same rank offers it in its
 * greeting; if both ends offer the same bell, they use it and close the new socket.
 *
 * All threads that sleep on links of a bell poll its descriptor, and one of them reads the bytes.
 * A byte may have been meant for another link, whose thread may be about to poll. So the reader
 * wakes every waiter whose flag the peer has cleared, through transport_pair.wake. The peer clears
 * a flag before it rings, so the thread that reads the byte always finds that waiter.
 *
 * An end of file on the socket shows all links of the bell that the peer's process has ended.
 */
#ifndef RING_LINES_BELL_H
#define RING_LINES_BELL_H

#include "transport.h"

#include <stdatomic.h>

typedef struct bell bell;

/** The flags that a waiter has set in shared memory: consumer_sleeps of the inbound ring, and
 *  producer_sleeps of the outbound one (lines.h). NULL: not set. */
typedef struct bell_flags {
    const _Atomic uint32_t *in, *out;
} bell_flags;

/** A link with sleeping threads, in the list of its bell. Guarded by the bell's lock. */
typedef struct bell_waiter {
    struct bell_waiter *next;
    bool listed;
    bell_flags flags;
    const transport_pair *pair; /* of the link */
} bell_waiter;

/** Makes a bell from socket @p fd, and takes ownership of the socket even on failure.
 *  @param id  identifies the bell at both ends of the pair; 0: it is not shared.
 *  @return NULL if there is no memory. */
bell *bell_new(int fd, const transport_pair *pair, uint64_t id);
/** @return the oldest bell of the pair that is shared and has not ended, with a reference for the
 *  caller; NULL if there is no such bell. */
bell *bell_find(const transport_pair *pair);
/** Drops a reference to a bell; the last one closes it. NULL is allowed. */
void bell_drop(bell *b);

/** @return the id; 0 if @p b is NULL or not shared. */
uint64_t bell_id(const bell *b);
int bell_fd(const bell *b);
/** Wakes the peer's threads that sleep on this bell. Never blocks. */
void bell_ring(const bell *b);
/** Reads the bytes that the peer has rung, and wakes the threads of other links for which they were
 *  meant. @return false if the peer has ended. */
bool bell_drain(bell *b);

/** Adds @p s to the list: the link's thread is about to set @p flags and to sleep on bell_fd(). */
void bell_add_waiter(bell *b, bell_waiter *s, const bell_flags *flags);
/** Removes @p s from the list, if it is there: its thread is awake again. */
void bell_remove_waiter(bell *b, bell_waiter *s);

#endif
