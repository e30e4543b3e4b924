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
#include "job.h"
#include "poll_set.h"

/** After a failure the others get 1 s to report, then SIGTERM, then SIGKILL. */
#define RANKS_REPORT_SECONDS 1.0
#define RANKS_TERM_SECONDS 0.5

typedef struct local_ranks local_ranks;

/** @param stdio  what rank 0 gets as 0, 1, 2 if it is here: a descriptor of ours, or -1 for
 *                a pipe that is fed (0) or read (1, 2) here. Borrowed.
 *  A rank that cannot be started is an ended() event; then no further one is started. */
ring_status local_ranks_start(const job *j, const share *s, const int stdio[3],
                              const launch_events *events, local_ranks **out);
void local_ranks_free(local_ranks *c);

void local_ranks_watch(local_ranks *c, poll_set *set);
/** After SIGCHLD: collects who has ended. */
void local_ranks_collect(local_ranks *c);
/** Does what is due. */
void local_ranks_tick(local_ranks *c);
/** When local_ranks_tick() is due next. */
double local_ranks_due(const local_ranks *c);

void local_ranks_signal(local_ranks *c, int signal_number);
/** Begins to end them: time to report, SIGTERM, SIGKILL. */
void local_ranks_stop(local_ranks *c);
void local_ranks_kill(local_ranks *c);
/** Nobody reads this stream of a rank any more: the rank shall notice. */
void local_ranks_mute(local_ranks *c, int rank, int number);

/** @return true if rank 0's standard input can take more. */
bool local_ranks_hungry(const local_ranks *c);
/** Input for rank 0; count 0: its end. */
void local_ranks_feed(local_ranks *c, const char *data, size_t count);

/** @return ranks that still run. */
int local_ranks_alive(const local_ranks *c);
/** All are gone, with all that they started. */
bool local_ranks_done(const local_ranks *c);

#endif
