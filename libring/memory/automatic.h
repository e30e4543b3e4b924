/* SPDX-License-Identifier: Apache-2.0
 *
 * automatic: manages regions that libring registers by itself. A call over links that put and get
 * memory registers each large buffer that is in no region, and the region is kept for later calls
 * as long as its pages are watched (watched.h) and unchanged. If the kernel refuses to watch
 * memory, there are no automatic regions of the host's memory.
 *
 * If a region changes, or a user registers memory that overlaps it, no further call uses it, and it
 * ends with the last call that still does. Its pages stay pinned until then, or until the next call
 * checks.
 *
 * Unregistered allocations of accelerators become automatic regions too, at the first call that has
 * a buffer in them. Each call checks that the allocation is still the same one.
 *
 * At most AUTOMATIC_MOST regions and automatic_most() bytes of the host's memory are kept; the
 * least recently used idle region is dropped first.
 */
#ifndef RING_AUTOMATIC_H
#define RING_AUTOMATIC_H

#include "base.h"

struct accelerator;

/** A shorter message is carried in one frame, which costs a copy at each end, about 10 us, and no
 *  round trip. Creating a region costs several times as much; a longer message saves that in a few
 *  calls. */
enum { AUTOMATIC_LEAST_BYTES = 64 << 10 };
/** The most regions that are kept. */
enum { AUTOMATIC_MOST = 256 };

/** Count the communicators that use automatic regions. When the last one leaves, all idle regions
 *  and the watching end. */
void automatic_enter(void);
void automatic_leave(void);

/** Stops creating automatic regions in this process, where they would do harm. @param why  for the
 *  log. */
void automatic_forbid(const char *why);

/** Does the same as region_hold(), and creates an automatic region if the memory is in no region.
 *  @return the reference, for region_release(); 0 if links cannot access the memory, so that the
 *  message has to be carried. */
uint64_t automatic_hold(const void *ptr, size_t bytes);

/** Finds the accelerator that owns the byte at @p at: by its region or, if it is not registered, by
 *  asking the accelerators of the process.
 *  @param[out] by  NULL if the memory is the host's. @param[out] whole  whether all @p bytes are.
 *  @return RING_OK, or the error of an accelerator. */
ring_status automatic_device(const void *at, size_t bytes, const struct accelerator **by,
                             bool *whole);

/** Ends all idle automatic regions, so that other memory can be pinned. On return, regions that
 *  another thread was ending are unpinned too.
 *  @return true if there was one. */
bool automatic_drop_idle(void);

typedef struct automatic_counts {
    uint64_t made, held, ended; /* since the process began; held: calls that found a region */
    size_t regions, bytes;      /* current; bytes: of the host's memory */
} automatic_counts;
void automatic_count(automatic_counts *out);

/** @return the most bytes that are kept: a quarter of the machine's memory, but at most half of the
 *  process's limit on locked memory. */
size_t automatic_most(void);
/** Sets that limit, for tests. 0: the default. */
void automatic_set_most(size_t bytes);

#endif
