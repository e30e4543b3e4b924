/* SPDX-License-Identifier: Apache-2.0
 *
 * watched: detects when any thread unmaps, moves or discards pages in given ranges of memory. The
 * kernel reports the changes (userfaultfd(2)): munmap, mmap over the range, mremap, madvise and brk
 * do not return before a thread of this file has read their event. That thread takes no lock and
 * frees nothing, so these calls may be made with any locks held. No page fault is diverted.
 *
 * MADV_GUARD_INSTALL (Linux 6.13) and shmat() with SHM_REMAP are not detected.
 *
 * Whole mappings are watched, not only the range, because a partly watched mapping would be split
 * in two, and mremap() refuses to move such mappings. Only private anonymous memory can be watched,
 * because other processes can change the pages of files. This needs Linux 5.18 and an architecture
 * on which userfaultfd can write-protect pages.
 *
 * All functions are thread-safe. A forked child begins without watched ranges.
 */
#ifndef RING_WATCHED_H
#define RING_WATCHED_H

#include "base.h"

enum { WATCHED_MOST = 512 };

/** Begins to watch [base, base+bytes). Starts the thread if necessary.
 *  @param number  chosen by the caller: below WATCHED_MOST and not in use.
 *  @return false if this range cannot be watched, or if no range can, see watched_is_refused().
 *  Cost: reads /proc/self/maps, which can take milliseconds. */
bool watched_begin(unsigned number, const void *base, size_t bytes);

/** Seconds until the thread, which may have to wait for a core, counts as too slow. An unchanged
 *  buffer is then registered again. Tests that count registrations set more. */
extern double watched_patience;

/** @return true if no call that has returned before changed a page of the range since
 *  watched_begin(); false also if the thread was too slow. Cost: one system call, and possibly a
 *  short wait for the thread. */
bool watched_is_whole(unsigned number);

/** @return true if a range has changed since the last call of this function; the owners of ranges
 *  then check theirs. Cost: one load. */
bool watched_has_news(void);

void watched_end(unsigned number);

/** @return true if the kernel or its policy does not let this process watch memory. Cost: one load.
 */
bool watched_is_refused(void);
/** Finds out whether this process can watch memory, without starting to. @param[out] why  the
 * reason if it cannot. */
bool watched_probe(char *why, size_t size);

/** Ends the thread and all watching. It starts again with the next watched_begin(). */
void watched_close(void);

#endif
