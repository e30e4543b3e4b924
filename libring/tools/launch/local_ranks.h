/* SPDX-License-Identifier: Apache-2.0
 *
 * local_ranks: the ranks of this host. Starts them, reads what they write, tells how they end, and
 * makes sure that nothing they started outlives them: each rank is a process group, and
 * orphans fall to this process. If this process is itself killed (SIGKILL), a reaper ends the
 * groups; only what left its group (setsid) then stays.
 */
#ifndef LAUNCH_LOCAL_RANKS_H
#define LAUNCH_LOCAL_RANKS_H

#include "events.h"
#include "host_ranks.h"
#include "job.h"

/** After a failure the others get 1 s to report, then SIGTERM, then SIGKILL. */
#define RANKS_REPORT_SECONDS 1.0
#define RANKS_TERM_SECONDS 0.5

/** @param stdio  what rank 0 gets as 0, 1, 2 if it is here: a descriptor of ours, or -1 for
 *                a pipe that is fed (0) or read (1, 2) here. Borrowed.
 *  A rank that cannot be started is an ended() event; then no further one is started. */
ring_status local_ranks_start(const job *j, const share *s, const int stdio[3],
                              const launch_events *events, host_ranks **out);
/** Nobody reads this stream of a rank any more: the rank shall notice. */
void local_ranks_mute(host_ranks *h, int rank, int number);

#endif
