/* SPDX-License-Identifier: Apache-2.0
 *
 * watched: ranges of memory whose pages must stay the same: not unmapped, moved or discarded by any
 * thread. The kernel reports changes (userfaultfd(2)): munmap, mmap over them, mremap, madvise and
 * brk do not return before a thread of this file has read their event. That thread takes no lock
 * and frees nothing, so these calls may be made with any locks held. No page fault is diverted.
 *
 * Not noticed are MADV_GUARD_INSTALL (Linux 6.13) and shmat() with SHM_REMAP.
 *
 * The whole of each mapping is watched, not only the range: a partly watched mapping would be split
 * in two, and mremap() refuses those. Only private anonymous memory can be watched: pages of files
 * also change without the process's doing. Needs Linux 5.18 and an architecture that can
 * write-protect by userfaultfd.
 *
 * Thread-safe. Forked children start without any.
 */
#ifndef RING_WATCHED_H
#define RING_WATCHED_H

#include "base.h"

enum { WATCHED_MOST = 512 };

/** Begins to watch [base, base+bytes) under a number below WATCHED_MOST that is not in use; the
 *  caller gives numbers. Starts the thread if need be. Reads /proc/self/maps: up to milliseconds.
 *  @return false: this range cannot be watched, or nothing can, see watched_is_refused(). */
bool watched_begin(unsigned number, const void *base, size_t bytes);

/** Seconds until the thread, which may wait for a core, counts as too slow: an unchanged buffer is
 *  registered anew then. Tests that count registrations set more. */
extern double watched_patience;

/** @return true if no page of it has changed since watched_begin(), by any call that returned
 *  before this one was made. One system call; may wait for the thread for moments. False also if
 *  that wait was too long. */
bool watched_is_whole(unsigned number);

/** @return true if a range was seen to change since the last call: owners then look. One load. */
bool watched_has_news(void);

void watched_end(unsigned number);

/** @return true if the kernel or its policy refuses to watch in this process. One load. */
bool watched_is_refused(void);
/** @return true if this process can watch memory. Leaves nothing behind. Writes the reason into @p
 *  why if not. */
bool watched_probe(char *why, size_t size);

/** Ends the thread and all watching. It starts again with the next watched_begin(). */
void watched_close(void);

#endif
