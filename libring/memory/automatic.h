/* SPDX-License-Identifier: Apache-2.0
 *
 * automatic: manages automatic regions, which libring registers without a call of the user. A
 * collective over links that put and get memory registers each large buffer that is in no region.
 * The region is kept for later calls as long as its pages are watched (watched.h) and their mapping
 * has not changed. If the kernel does not let this process watch memory, there are no automatic
 * regions of the host's memory.
 *
 * When the mapping of a region changes, or a user registers memory that overlaps it, no further
 * call may use the region, and it ends with the last call that still uses it. A change is detected
 * by the next call, so the old pages stay pinned until then.
 *
 * An unregistered allocation of an accelerator becomes an automatic region at the first call that
 * has a buffer in it. Each call checks that the address still belongs to the same allocation.
 *
 * At most AUTOMATIC_MOST regions and automatic_most() bytes of the host's memory are kept. The
 * least recently used region that no call uses is dropped first.
 */
#ifndef RING_AUTOMATIC_H
#define RING_AUTOMATIC_H

#include "base.h"

struct accelerator;

/** Smaller buffers get no region. A message below this size is sent as one frame, which costs a
 * copy at each end, about 10 us, and no round trip. Creating a region costs several times as much,
 * which a longer message saves within a few calls. */
enum { AUTOMATIC_LEAST_BYTES = 64 << 10 };
/** The most automatic regions that are kept. */
enum { AUTOMATIC_MOST = 256 };

/** Count the communicators that use automatic regions. After the last one has left, all automatic
 *  regions that no call uses end, and memory is not watched any more. */
void automatic_enter(void);
void automatic_leave(void);

/** Creates no more automatic regions in this process, for the reason @p why, which is logged. */
void automatic_forbid(const char *why);

/** Holds the region of a buffer, as region_hold() does, and creates an automatic region if the
 * buffer is in no region.
 *  @return the reference, for region_release(); 0 if there is no region, so that links must copy
 * the buffer into frames. */
uint64_t automatic_hold(const void *ptr, size_t bytes);

/** Finds the accelerator that owns the byte at @p at: by its region or, if it is not registered, by
 *  asking the accelerators of the process.
 *  @param[in,out] by  the accelerator to ask first, or NULL; receives NULL if the memory is the
 *                     host's.
 *  @param[out] whole  true if all @p bytes have the same owner.
 *  @return RING_OK, or the error of an accelerator. */
ring_status automatic_device(const void *at, size_t bytes, const struct accelerator **by,
                             bool *whole);

/** Ends all automatic regions that no call uses, so that other memory can be pinned. On return,
 *  regions that another thread was ending at the same time are unpinned, too.
 *  @return true if it has ended a region. */
bool automatic_drop_idle(void);

typedef struct automatic_counts {
    /* Since the process began: regions created; uses of an existing region; regions ended. */
    uint64_t made, held, ended;
    size_t regions, bytes; /* current regions, and their bytes of the host's memory */
} automatic_counts;
/** Reports the counts of this process. */
void automatic_count(automatic_counts *out);

/** @return the most bytes that are kept: a quarter of the machine's memory, but at most half of the
 *  process's limit on locked memory. */
size_t automatic_most(void);
/** Sets that limit, for tests. 0: the default. */
void automatic_set_most(size_t bytes);

#endif
