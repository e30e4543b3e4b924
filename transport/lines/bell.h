/* SPDX-License-Identifier: Apache-2.0
 *
 * bell: the socket over which the ends of a link wake each other. Links of one pair of ranks share
 * a bell, so that communicators cost no descriptors: each link is opened over a socket of its own;
 * an end that has a bell to the same rank offers it in its greeting; if both offer the same one
 * they close the new socket.
 *
 * Sharing. All threads that sleep on links of a bell poll its descriptor, and one of them reads the
 * bytes. Those may have been rung for another link, whose sleeper could still be about to poll: the
 * reader wakes every sleeper whose flag the peer has lowered, by other means (transport_pair.wake).
 * The peer lowers a flag before it rings, so a byte is never read without its sleeper being found.
 *
 * The end of the socket shows that the peer's process has ended, for all links of the bell.
 */
#ifndef RING_LINES_BELL_H
#define RING_LINES_BELL_H

#include "transport.h"

#include <stdatomic.h>

typedef struct bell bell;

/** The flags in shared memory that a sleeper raises; NULL: not raised. */
typedef struct bell_flags {
    const _Atomic uint32_t *in, *out;
} bell_flags;

/** The sleeping threads of one link. Guarded by the bell's lock. */
typedef struct bell_sleeper {
    struct bell_sleeper *next;
    bool listed;
    bell_flags flags;
    const transport_pair *pair; /* of the link */
} bell_sleeper;

/** Makes a bell of a socket, which it owns, also on failure.
 *  @param id  what both ends of the pair know it by; 0: it is not shared.
 *  @return NULL without memory. */
bell *bell_new(int fd, const transport_pair *pair, uint64_t id);
/** @return the oldest bell of the pair that is shared and has not ended, held for the caller; NULL:
 *  there is none. */
bell *bell_find(const transport_pair *pair);
/** Lets go of a bell; its last holder closes it. NULL is allowed. */
void bell_drop(bell *b);

/** @return 0: of NULL, or not shared. */
uint64_t bell_id(const bell *b);
int bell_fd(const bell *b);
/** Wakes the peer's sleepers. */
void bell_ring(const bell *b);
/** Reads what was rung, and wakes the sleepers of other links that it was for.
 *  @return false: the peer is gone. */
bool bell_hear(bell *b);

/** The caller is about to raise @p flags, and to sleep on bell_fd(). */
void bell_enter(bell *b, bell_sleeper *s, const bell_flags *flags);
/** It is awake again: @p s is not listed any more. */
void bell_leave(bell *b, bell_sleeper *s);

#endif
