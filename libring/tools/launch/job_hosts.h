/* SPDX-License-Identifier: Apache-2.0
 *
 * job_hosts: the ranks of all hosts as one.
 */
#ifndef LAUNCH_JOB_HOSTS_H
#define LAUNCH_JOB_HOSTS_H

#include "local_ranks.h"
#include "remote_ranks.h"
#include "setup.h"

typedef struct job_hosts {
    host_ranks **hosts; /* the other hosts, then this one, if ranks run here */
    size_t count, others;
} job_hosts;

/** Starts ssh to the other hosts of @p plan; their answers come later. Borrows all. */
ring_status job_hosts_connect(job_hosts *t, const setup *plan, const options *o,
                              const launch_events *events, console *c);
/** Every other host has answered. */
bool job_hosts_ready(const job_hosts *t);
/** "a, b": the hosts of @p plan without an answer, cut to fit. */
void job_hosts_silent_hosts(const job_hosts *t, const setup *plan, char *out, size_t size);
/** @return the first other host's own address. */
const char *job_hosts_address(const job_hosts *t);
/** Starts the ranks everywhere. @param stdio  as for local_ranks_start(). */
ring_status job_hosts_start(job_hosts *t, const setup *plan, const int stdio[3],
                            const launch_events *events);
void job_hosts_free(job_hosts *t);

void job_hosts_watch(job_hosts *t, poll_set *set);
/** After SIGCHLD. */
void job_hosts_collect(job_hosts *t);
void job_hosts_tick(job_hosts *t);
double job_hosts_due(const job_hosts *t);

void job_hosts_signal(job_hosts *t, int signal_number);
/** Begins to end all ranks: time to report, SIGTERM, SIGKILL. */
void job_hosts_stop(job_hosts *t);
/** Cuts off the other hosts, which ends their ranks. */
void job_hosts_cut(job_hosts *t);
void job_hosts_kill(job_hosts *t);

/** Input for rank 0, wherever it is. */
bool job_hosts_hungry(const job_hosts *t);
void job_hosts_feed(job_hosts *t, const char *data, size_t count);

/** @return ranks that still run. */
int job_hosts_alive(const job_hosts *t);
/** All ranks are gone, with all processes that they started. */
bool job_hosts_done(const job_hosts *t);

#endif
