/* SPDX-License-Identifier: Apache-2.0
 *
 * local_ranks: runs the ranks of this host. It starts the ranks, reads their output, reports their
 * ends, and ends all processes that they started. Each rank is a process group of its own, and
 * orphans become children of this process. If this process is killed by SIGKILL, a reaper process
 * kills the groups; only processes that have left their group by setsid() survive.
 */
#ifndef LAUNCH_LOCAL_RANKS_H
#define LAUNCH_LOCAL_RANKS_H

#include "host_ranks.h"
#include "job.h"

/** Starts the ranks of @p s, to which it keeps a pointer. If a rank cannot be started, reports the
 *  event FRAME_ENDED for it and starts no further ranks.
 *  @param stdio  for rank 0, if it is among these ranks: its descriptors 0, 1 and 2, which are
 *  descriptors of this process, or -1 for a pipe that local_ranks writes (0) or reads (1, 2). */
ring_status local_ranks_start(const job *j, const share *s, const int stdio[3],
                              const rank_events *events, host_ranks **out);

#endif
