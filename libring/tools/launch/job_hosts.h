/* SPDX-License-Identifier: Apache-2.0
 *
 * job_hosts: treats the ranks of all hosts of a job as one set, for the loop of run_job.
 */
#ifndef LAUNCH_JOB_HOSTS_H
#define LAUNCH_JOB_HOSTS_H

#include "remote_ranks.h"
#include "setup.h"

/** The members after the blank line are up to date when job_hosts_tick() has returned. */
typedef struct job_hosts {
    host_ranks **hosts; /* the other hosts, then this one, if ranks run here */
    size_t count, others;
    bool children; /* the caller sets it after SIGCHLD */

    double due;         /* time (clock_now()) at which job_hosts_tick() is due next     */
    int alive;          /* number of ranks that still run                               */
    bool done;          /* all ranks and the processes that they started have ended     */
    host_ranks *hungry; /* the host of rank 0 if its input can take more, else NULL     */
} job_hosts;

/** Starts ssh to the other hosts of @p plan and returns without waiting for answers. Keeps pointers
 *  to all arguments. */
ring_status job_hosts_connect(job_hosts *t, const setup *plan, const options *o,
                              const rank_events *events, console *c);
/** @return true when every other host has answered. */
bool job_hosts_ready(const job_hosts *t);
/** Writes the names of the hosts that have not answered, as "a, b"; names that do not fit are
 *  omitted. */
void job_hosts_silent_hosts(const job_hosts *t, char *out, size_t size);
/** Starts the ranks of all hosts. @param stdio  as for local_ranks_start(). */
ring_status job_hosts_start(job_hosts *t, const setup *plan, const int stdio[3],
                            const rank_events *events);
/** Ends the ranks that still run, and frees the hosts. */
void job_hosts_free(job_hosts *t);

/** Adds the descriptors of all ranks and connections. */
void job_hosts_watch(job_hosts *t, poll_set *set);
/** Does the work that is due. */
void job_hosts_tick(job_hosts *t);

/** Gives an order to all hosts. @param number  the frame's `rank`, such as a signal number. */
void job_hosts_order(job_hosts *t, enum frame_type type, int number);
/** Closes the connections to the other hosts, which ends the ranks there. */
void job_hosts_cut(job_hosts *t);

#endif
