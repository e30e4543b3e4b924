/* SPDX-License-Identifier: Apache-2.0
 *
 * team: the ranks of all hosts as one: a crew here, remotes elsewhere.
 */
#ifndef LAUNCH_TEAM_H
#define LAUNCH_TEAM_H

#include "crew.h"
#include "remote.h"
#include "setup.h"

typedef struct team {
    crew *crew;       /* the ranks of this host, NULL: none */
    remote **remotes; /* the other hosts                    */
    size_t remote_count;
} team;

/** Starts ssh to the other hosts of @p plan; their answers come later. Borrows all. */
ring_status team_connect(team *t, const setup *plan, const options *o,
                         const launch_events *events, console *c);
/** Every host has answered. */
bool team_ready(const team *t);
/** "a, b": the hosts of @p plan that have not, cut to fit. */
void team_silent_hosts(const team *t, const setup *plan, char *out, size_t size);
/** Starts the ranks everywhere. @param stdio  as for crew_start(). */
ring_status team_start(team *t, const setup *plan, const int stdio[3],
                       const launch_events *events);
void team_free(team *t);

void team_watch(team *t, poll_set *set);
/** After SIGCHLD. */
void team_collect(team *t);
void team_tick(team *t);
double team_due(const team *t);

void team_signal(team *t, int signal_number);
/** Begins to end all ranks: time to report, SIGTERM, SIGKILL. */
void team_stop(team *t);
/** Cuts off the other hosts, which ends their ranks. */
void team_cut(team *t);
void team_kill(team *t);

/** Input for rank 0, wherever it is. */
bool team_hungry(const team *t);
void team_feed(team *t, const char *data, size_t count);

/** @return ranks that still run. */
int team_alive(const team *t);
/** All are gone, with all that they started. */
bool team_done(const team *t);

#endif
