/* SPDX-License-Identifier: Apache-2.0
 *
 * job_hosts: treats the ranks of all hosts of a job as one set.
 */
#ifndef LAUNCH_JOB_HOSTS_H
#define LAUNCH_JOB_HOSTS_H

#include "remote_ranks.h"
#include "setup.h"

/** The second half is right after job_hosts_tick(). */
typedef struct job_hosts {
    host_ranks **hosts; /* the other hosts, then this one, if ranks run here */
    size_t count, others;
    bool children; /* set it after SIGCHLD */

    double due;         /* when job_hosts_tick() is due next                            */
    int alive;          /* ranks that still run                                         */
    bool done;          /* all ranks are gone, with all processes that they started     */
    host_ranks *hungry; /* the host of rank 0 if its input can take more, else NULL     */
} job_hosts;

/** Starts ssh to the other hosts of @p plan; their answers come later. Borrows all. */
ring_status job_hosts_connect(job_hosts *t, const setup *plan, const options *o,
                              const rank_events *events, console *c);
/** Every other host has answered. */
bool job_hosts_ready(const job_hosts *t);
/** "a, b": the hosts without an answer, cut to fit. */
void job_hosts_silent_hosts(const job_hosts *t, char *out, size_t size);
/** Starts the ranks everywhere. @param stdio  as for local_ranks_start(). */
ring_status job_hosts_start(job_hosts *t, const setup *plan, const int stdio[3],
                            const rank_events *events);
void job_hosts_free(job_hosts *t);

void job_hosts_watch(job_hosts *t, poll_set *set);
/** Does due work. */
void job_hosts_tick(job_hosts *t);

/** Gives an order to all hosts. */
void job_hosts_order(job_hosts *t, enum frame_type type, int number);
/** Cuts off the other hosts, which ends their ranks. */
void job_hosts_cut(job_hosts *t);

#endif
