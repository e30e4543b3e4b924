/* SPDX-License-Identifier: Apache-2.0
 *
 * headroom: reports how much memory this process can still allocate before the kernel kills
 * processes. The heap checks it, because an allocation of shared memory beyond it succeeds, and the
 * process that touches a page is killed later.
 */
#ifndef RING_HEADROOM_H
#define RING_HEADROOM_H

#include "base.h"

typedef struct headroom {
    size_t bytes;    /* SIZE_MAX if no bound is known */
    char bound[256]; /* names the bound in messages */
} headroom;

/** Reads the memory that is available on the machine, or that is left by the memory cgroups of this
 *  process (version 1 or 2) and their parents, whichever is least. Page cache counts as free, swap
 *  does not.
 *  @param root  "" for this machine; tests pass a folder with files of their own. */
void headroom_read(const char *root, headroom *out);

#endif
