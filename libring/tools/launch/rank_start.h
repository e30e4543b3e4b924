/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_start: starts the process of a rank with its program, environment, cores and secret.
 */
#ifndef LAUNCH_RANK_START_H
#define LAUNCH_RANK_START_H

#include "job.h"
#include "topo.h"

/** Data that the ranks of a host share while they are started. */
typedef struct rank_start {
    const job *j;
    const share *s;
    char path[4096];        /* of the program; "": it was not found              */
    int secret_fd, null_fd; /* -1: none */
    topo_cpu cpu;           /* the cores, if ranks are bound */
} rank_start;

/** Prepares the start of the ranks of @p s. @param[out] out  to be freed by rank_start_free(), also
 *  after a failure. */
ring_status rank_start_prepare(const job *j, const share *s, rank_start *out);
void rank_start_free(rank_start *st);

/** Starts rank s->first_rank + @p local.
 *  @param fds, ours  as in spawn_plan. fds NULL: no input, and pipes for output.
 *  @return its pid; -1, and errno, if it cannot be started. */
pid_t rank_start_process(const rank_start *st, int local, const int fds[3], int ours[3]);

#endif
