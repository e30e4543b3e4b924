/* SPDX-License-Identifier: Apache-2.0
 *
 * automatic: regions that nobody registered. A call over links that reach memory makes one of each
 * large buffer that lies in no region, and it is kept for later calls for as long as its pages are
 * watched (watched.h) and unchanged. Where the kernel lets nobody watch there are none.
 *
 * A region that changed, or that a user's registration overlaps, is used by no further call. Those
 * under way still find it, and with the last of them it ends. Its pages stay pinned so long, or
 * until the next call looks.
 *
 * Allocations of accelerators that nobody registered become such regions, too, at the first call
 * that has a buffer there. Each call asks whether the allocation is still the same one.
 *
 * Kept are at most AUTOMATIC_MOST regions, and so many bytes of the host's memory as
 * automatic_most() says: the least recently used one that no call uses makes way.
 */
#ifndef RING_AUTOMATIC_H
#define RING_AUTOMATIC_H

#include "base.h"

struct accelerator;

/** A shorter message is carried by one frame: a copy at each end, 10 us or so, and no round trip.
 *  Making a region costs several times as much, and a longer message saves that in a few calls. */
enum { AUTOMATIC_LEAST_BYTES = 64 << 10 };
/** So many are kept. */
enum { AUTOMATIC_MOST = 256 };

/** A communicator that wants automatic regions begins, or ends. With the last one all of them go
 *  that no call uses, and nothing is watched any more. */
void automatic_enter(void);
void automatic_leave(void);

/** No more are made in this process: they would do harm. @param why  for the log. */
void automatic_forbid(const char *why);

/** region_hold(), which makes an automatic region where there is none. To be released likewise.
 *  @return 0: the memory is not reached, and what lies there has to be carried. */
uint64_t automatic_hold(const void *ptr, size_t bytes);

/** Whose memory the byte at @p at is: as its region says, or, where nobody registered it, the
 *  accelerators of the process.
 *  @param[out] by  NULL: the host's. @param[out] whole  all @p bytes are.
 *  @return RING_OK, or why an accelerator cannot tell. */
ring_status automatic_device(const void *at, size_t bytes, const struct accelerator **by,
                             bool *whole);

/** Ends all automatic regions that no call uses, so that others find room to be pinned. What
 *  another thread ends just now is unpinned on return, too.
 *  @return false: there were none. */
bool automatic_drop_idle(void);

typedef struct automatic_counts {
    uint64_t made, held, ended; /* since the process began; held: calls that found one */
    size_t regions, bytes;      /* now; bytes: of the host's memory */
} automatic_counts;
void automatic_count(automatic_counts *out);

/** @return the most bytes that are kept: a quarter of the machine's memory, but at most half of
 *  what the process may lock. */
size_t automatic_most(void);
/** Sets it; for tests. 0: as it was. */
void automatic_set_most(size_t bytes);

#endif
