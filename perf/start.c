/* SPDX-License-Identifier: Apache-2.0
 *
 * launch: with -t 1 the environment's communicator is the one that is measured. With more, it
 * only carries the unique id to the other processes, and the threads join by that id.
 */
#include "start.h"
#include "bench.h"
#include "perf_options.h"
#include "threads.h"

#include <stdio.h>

typedef struct thread_rank {
    launch_body *body;
    const void *options;
    const ring_unique_id *id;
    int rank, ranks;
    int exit_status;
} thread_rank;

static int report(int rank, ring_comm *comm)
{
    fprintf(stderr, "ringperf: rank %d: %s\n", rank, ring_last_error(comm));
    return PERF_EXIT_ERROR;
}

static void run_rank(void *arg)
{
    thread_rank *self = arg;
    ring_comm *comm;
    if (ring_comm_init(&comm, self->ranks, self->id, self->rank) != RING_OK) {
        self->exit_status = report(self->rank, NULL);
        return;
    }
    self->exit_status = self->body(self->options, comm);
    ring_comm_destroy(comm);
}

static int run_threads(int count, launch_body *body, const void *options, const ring_unique_id *id,
                       int process, int processes)
{
    thread_rank ranks[PERF_MOST_THREADS];
    for (int i = 0; i < count; i++)
        ranks[i] = (thread_rank){.body = body,
                                 .options = options,
                                 .id = id,
                                 .rank = process * count + i,
                                 .ranks = processes * count};
    const int started = threads_run(run_rank, ranks, sizeof *ranks, count);
    if (started < count) {
        fprintf(stderr, "ringperf: only %d of %d threads could be started; lower -t\n", started,
                count);
        return PERF_EXIT_ERROR;
    }
    int worst = PERF_EXIT_GOOD;
    for (int i = 0; i < count; i++)
        if (ranks[i].exit_status > worst)
            worst = ranks[i].exit_status;
    return worst;
}

/* The id of the threads' communicator, from the first process to all. */
static ring_status share_id(ring_comm *processes, ring_unique_id *id)
{
    *id = (ring_unique_id){{0}};
    if (ring_comm_rank(processes) == 0) {
        const ring_status status = ring_get_unique_id(id);
        if (status != RING_OK) {
            ring_comm_abort(processes, ring_last_error(NULL));
            return status;
        }
    }
    return ring_broadcast(id, id, sizeof *id, RING_UINT8, 0, processes, NULL);
}

int launch_ranks(int threads, launch_body *body, const void *options)
{
    ring_comm *comm;
    if (ring_comm_init_env(&comm) != RING_OK) {
        fprintf(stderr, "ringperf: %s\n", ring_last_error(NULL));
        return PERF_EXIT_ERROR;
    }
    int exit_status;
    ring_unique_id id;
    const int process = ring_comm_rank(comm), processes = ring_comm_size(comm);
    if (threads == 1)
        exit_status = body(options, comm);
    else if (share_id(comm, &id) != RING_OK)
        exit_status = report(process, comm);
    else
        exit_status = run_threads(threads, body, options, &id, process, processes);
    ring_comm_destroy(comm);
    return exit_status;
}
