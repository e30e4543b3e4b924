/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_start: starts the process of one rank, with its program, environment, cores and secret.
 */
#ifndef LAUNCH_RANK_START_H
#define LAUNCH_RANK_START_H

#include "job.h"
#include "topo.h"

/** The things that the ranks of a host share at their start. */
typedef struct rank_start {
    const job *j;
    const share *s;
    char path[4096];        /* of the program; "": neither in PATH nor beside us */
    int secret_fd, null_fd; /* -1: none */
    topo_cpu cpu;
} rank_start;

/** @param[out] out  rank_start_free() it, also after a failure. */
ring_status rank_start_prepare(const job *j, const share *s, rank_start *out);
void rank_start_free(rank_start *st);

/** Starts rank s->first_rank + @p local. @param fds  as for spawn_start(); NULL: no input, and
 * pipes for output. @return its pid; -1 and errno. */
pid_t rank_start_process(const rank_start *st, int local, const int fds[3], int ours[3]);

#endif
