/* SPDX-License-Identifier: Apache-2.0
 *
 * automatic: regions that libring registers itself. A call over links that put and get memory makes
 * one of each large buffer that lies in no region, and it is kept for later calls as long as its
 * pages are watched (watched.h) and unchanged. If the kernel refuses to watch there are none.
 *
 * A region that changed, or that a user's registration overlaps, is used by no further call. Calls
 * under way still use it, and it ends with the last of them. Its pages stay pinned until then, or
 * until the next call checks.
 *
 * Unregistered allocations of accelerators become such regions, too, at the first call that has a
 * buffer there. Each call asks whether the allocation is still the same one.
 *
 * At most AUTOMATIC_MOST regions are kept, and at most automatic_most() bytes of the host's memory:
 * the least recently used idle region is dropped first.
 */
#ifndef RING_AUTOMATIC_H
#define RING_AUTOMATIC_H

#include "base.h"

struct accelerator;

/** A shorter message is carried by one frame: a copy at each end, 10 us or so, and no round trip.
 *  Making a region costs several times as much, and a longer message saves that in a few calls. */
enum { AUTOMATIC_LEAST_BYTES = 64 << 10 };
/** The most regions that are kept. */
enum { AUTOMATIC_MOST = 256 };

/** A communicator that wants automatic regions begins, or ends. The last one ends all idle regions
 *  and the watching. */
void automatic_enter(void);
void automatic_leave(void);

/** Stops making automatic regions in this process: they would do harm. @param why  for the log. */
void automatic_forbid(const char *why);

/** region_hold(), which makes an automatic region if there is none. To be released likewise.
 *  @return 0: links do not reach the memory, so the message has to be carried. */
uint64_t automatic_hold(const void *ptr, size_t bytes);

/** Finds the accelerator whose memory the byte at @p at is: by its region, or, unregistered, by
 *  asking the accelerators of the process.
 *  @param[out] by  NULL: the host's. @param[out] whole  all @p bytes are.
 *  @return RING_OK, or why an accelerator cannot tell. */
ring_status automatic_device(const void *at, size_t bytes, const struct accelerator **by,
                             bool *whole);

/** Ends all idle automatic regions, so that others can be pinned. Regions that another thread is
 *  ending are unpinned on return, too.
 *  @return false: there were none. */
bool automatic_drop_idle(void);

typedef struct automatic_counts {
    uint64_t made, held, ended; /* since the process began; held: calls that found one */
    size_t regions, bytes;      /* now; bytes: of the host's memory */
} automatic_counts;
void automatic_count(automatic_counts *out);

/** @return the most bytes that are kept: a quarter of the machine's memory, but at most half of the
 *  process's limit on locked memory. */
size_t automatic_most(void);
/** Sets it; for tests. 0: the default. */
void automatic_set_most(size_t bytes);

#endif
