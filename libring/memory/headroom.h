/* SPDX-License-Identifier: Apache-2.0
 *
 * headroom: the memory that this process can still take before the kernel starts to end processes.
 * Allocating shared memory beyond it succeeds: the process that touches the page is killed.
 */
#ifndef RING_HEADROOM_H
#define RING_HEADROOM_H

#include "base.h"

typedef struct headroom {
    size_t bytes;    /* SIZE_MAX: no bound is known */
    char bound[256]; /* its source, for messages */
} headroom;

/** The memory available on the machine, or left by the memory cgroups of this process (version 1 or
 *  2) and their parents, whichever is least. Page cache counts as free, swap does not.
 *  @param root  "" for this machine; tests give the folder of a made one. */
void headroom_read(const char *root, headroom *out);

#endif
