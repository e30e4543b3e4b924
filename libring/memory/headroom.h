/* SPDX-License-Identifier: Apache-2.0
 *
 * headroom: reports how much memory this process can allocate before the kernel has to kill
 * processes. The heap checks the headroom, because an allocation of shared memory that exceeds it
 * succeeds, and the kernel kills a process later, when the pages are used.
 */
#ifndef RING_HEADROOM_H
#define RING_HEADROOM_H

#include "base.h"

typedef struct headroom {
    size_t bytes;    /* SIZE_MAX if no bound is known */
    char bound[256]; /* names the limit for messages, e.g. "the machine's available memory" */
} headroom;

/** Reads the headroom: the least of the machine's available memory and of the unused memory of each
 *  memory cgroup (version 1 or 2) of this process and their parents. The page cache counts as
 * unused; swap does not count.
 *  @param root  "" for this machine; tests pass a folder with files of their own. */
void headroom_read(const char *root, headroom *out);

#endif
