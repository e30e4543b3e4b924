/* SPDX-License-Identifier: Apache-2.0
 *
 * crew: the ranks of this host. Starts them, reads what they write, tells how they end, and
 * makes sure that nothing they started outlives them: each rank is a process group, and
 * orphans fall to this process. If this process is itself killed (SIGKILL), a warden ends the
 * groups; only what left its group (setsid) then stays.
 */
#ifndef LAUNCH_CREW_H
#define LAUNCH_CREW_H

#include "events.h"
#include "job.h"
#include "poll_set.h"

/** After a failure the others get 1 s to report, then SIGTERM, then SIGKILL. */
#define CREW_REPORT_SECONDS 1.0
#define CREW_TERM_SECONDS 0.5

typedef struct crew crew;

/** @param stdio  what rank 0 gets as 0, 1, 2 if it is here: a descriptor of ours, or -1 for
 *                a pipe that is fed (0) or read (1, 2) by the crew. Borrowed.
 *  A rank that cannot be started is an ended() event; then no further one is started. */
ring_status crew_start(const job *j, const share *s, const int stdio[3],
                       const launch_events *events, crew **out);
void crew_free(crew *c);

void crew_watch(crew *c, poll_set *set);
/** After SIGCHLD: collects who has ended. */
void crew_collect(crew *c);
/** Does what is due. */
void crew_tick(crew *c);
/** When crew_tick() is due next. */
double crew_due(const crew *c);

void crew_signal(crew *c, int signal_number);
/** Begins to end them: time to report, SIGTERM, SIGKILL. */
void crew_stop(crew *c);
void crew_kill(crew *c);
/** Nobody reads this stream of a rank any more: the rank shall notice. */
void crew_mute(crew *c, int rank, int stream);

/** @return true if rank 0's standard input can take more. */
bool crew_hungry(const crew *c);
/** Input for rank 0; count 0: its end. */
void crew_feed(crew *c, const char *data, size_t count);

/** @return ranks that still run. */
int crew_alive(const crew *c);
/** All are gone, with all that they started. */
bool crew_done(const crew *c);

#endif
