/* SPDX-License-Identifier: Apache-2.0
 *
 * watched: detects when any thread unmaps, moves or discards pages in given ranges of memory. The
 * kernel reports the changes as events (userfaultfd(2)): munmap, mmap over the range, mremap,
 * madvise and brk do not return before a thread of watched.c has read their event. That thread
 * takes no lock and frees no memory, so these system calls may be made while any locks are held.
 * Page faults are handled by the kernel as usual.
 *
 * MADV_GUARD_INSTALL (Linux 6.13) and shmat() with SHM_REMAP are not detected.
 *
 * Whole mappings are watched, not only the range. If a part of a mapping were watched, the kernel
 * would split the mapping, and mremap() cannot move split mappings. Only private anonymous memory
 * can be watched, because other processes can change the pages of files. Watching needs Linux 5.18
 * and an architecture on which userfaultfd can write-protect pages.
 *
 * All functions are thread-safe. A forked child begins without watched ranges.
 */
#ifndef RING_WATCHED_H
#define RING_WATCHED_H

#include "base.h"

/** The most ranges that are watched at a time. */
enum { WATCHED_MOST = 512 };

/** Begins to watch [base, base+bytes). Starts the thread if necessary.
 *  @param number  identifies the range; the caller chooses a number below WATCHED_MOST that is not
 * in use.
 *  @return false if the range cannot be watched; watched_is_refused() tells if no range can.
 *  Cost: reads /proc/self/maps, which can take milliseconds. */
bool watched_begin(unsigned number, const void *base, size_t bytes);

/** s: the time for which watched_is_whole() waits until the thread has read all events. After that
 * a range counts as changed, and an unchanged buffer is registered again. Tests that count
 *  registrations set a longer time, since the thread may have to wait for a core. */
extern double watched_patience;

/** @return true if no system call that has returned has changed a page of the range since
 *  watched_begin(); false also if the thread has not read all events within watched_patience. Cost:
 *  one system call, and possibly a short wait for the thread. */
bool watched_is_whole(unsigned number);

/** @return true if a range has changed since the last call of this function; callers then check
 * their ranges by watched_is_whole(). Cost: one load. */
bool watched_has_news(void);

/** Ends the watching of a range, whether it was watched or not. */
void watched_end(unsigned number);

/** @return true if an attempt has shown that this process cannot watch memory. Cost: one load. */
bool watched_is_refused(void);
/** @return true if this process can watch memory. Does not start the thread.
 *  @param[out] why  [size] the reason if it cannot. */
bool watched_probe(char *why, size_t size);

/** Ends the thread, and the watching of all ranges. The next watched_begin() starts the thread
 * again. */
void watched_close(void);

#endif
