/* SPDX-License-Identifier: Apache-2.0
 *
 * reaper: a small process that kills the ranks' process groups when the launcher has ended, even by
 * kill -9. The kernel kills ranks with their launcher, but not the processes that ranks have
 * started. The reaper is not an ancestor of these, so it cannot find processes that have left their
 * group by setsid().
 */
#ifndef LAUNCH_REAPER_H
#define LAUNCH_REAPER_H

#include "base.h"

#include <sys/types.h>

typedef struct reaper {
    pid_t pid; /* 0: not started */
    int fd;    /* writing end of a pipe: the reaper gets its end of file when the launcher ends */
    _Atomic pid_t *groups; /* [count] shared with the reaper: a process group to kill, or 0 */
    size_t count;
} reaper;

/** Starts the reaper. @param count  size of w->groups, which are all 0 at first. */
ring_status reaper_start(reaper *w, size_t count);
/** Ends the reaper, which kills the groups that are left in w->groups. */
void reaper_stop(reaper *w);

#endif
