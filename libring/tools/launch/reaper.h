/* SPDX-License-Identifier: Apache-2.0
 *
 * reaper: runs a small process that outlives the launcher briefly. Ranks die with their launcher,
 * but processes that they started do not. When the launcher has ended, even by kill -9, the reaper
 * kills the process groups that it knows. It is not their ancestor, so it cannot reach processes
 * that left their group (setsid).
 */
#ifndef LAUNCH_REAPER_H
#define LAUNCH_REAPER_H

#include "base.h"

#include <sys/types.h>

typedef struct reaper {
    pid_t pid;             /* 0: not started */
    int fd;                /* its end of file is our death */
    _Atomic pid_t *groups; /* [count] shared with the reaper: process groups that exist, or 0 */
    size_t count;
} reaper;

/** @param count  the most groups that exist at once. */
ring_status reaper_start(reaper *w, size_t count);
/** Ends the reaper in order; the groups are gone already. */
void reaper_stop(reaper *w);

#endif
