/* SPDX-License-Identifier: Apache-2.0
 *
 * local_ranks: runs the ranks of this host: starts them, reads their output, reports their ends,
 * and ends all processes that they started. Each rank is a process group, and orphans become
 * children of this process. If this process is killed (SIGKILL), a reaper ends the groups; only
 * processes that left their group (setsid) survive.
 */
#ifndef LAUNCH_LOCAL_RANKS_H
#define LAUNCH_LOCAL_RANKS_H

#include "host_ranks.h"
#include "job.h"

/** @param stdio  descriptors 0, 1, 2 of rank 0 if it is here: one of ours, or -1 for a pipe that is
 *  fed (0) or read (1, 2) here. Borrowed.
 *  A rank that cannot be started is an event, FRAME_ENDED; then no further one is started. */
ring_status local_ranks_start(const job *j, const share *s, const int stdio[3],
                              const rank_events *events, host_ranks **out);

#endif
