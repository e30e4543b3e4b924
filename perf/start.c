/* SPDX-License-Identifier: Apache-2.0
 *
 * start: makes the communicators. If each process has one rank, and no `enter` function, the
 * communicator of the environment is measured. Otherwise that communicator only distributes a
 * unique id to all processes, and their threads join a second communicator by that id.
 */
#include "start.h"
#include "bench.h"
#include "perf_options.h"
#include "threads.h"

#include <stdio.h>

typedef struct thread_rank {
    launch_body *body;
    const void *options;
    launch_enter *enter;
    const ring_unique_id *id;
    int rank, ranks, local, local_ranks;
    int thread, threads; /* number of this thread in its process, and number of its threads */
    int exit_status;
} thread_rank;

static void run_rank(void *arg)
{
    thread_rank *self = arg;
    ring_comm *comm;
    /* If a launcher has bound the processes, each has too few cores for all ranks of the host, and
     * only its own threads share them. */
    if (self->local_ranks > 1 && !threads_take_cores(self->local, self->local_ranks))
        (void)threads_take_cores(self->thread, self->threads);
    const char *why_not = self->enter ? self->enter(self->options, self->local) : NULL;
    if (why_not) {
        fprintf(stderr, "ringperf: rank %d: %s\n", self->rank, why_not);
        self->exit_status = PERF_EXIT_ERROR;
        return;
    }
    if (ring_comm_init(&comm, self->ranks, self->id, self->rank) != RING_OK) {
        self->exit_status = PERF_EXIT_ERROR;
        return;
    }
    self->exit_status = self->body(self->options, comm);
    ring_comm_destroy(comm);
}

/* @param first  the configuration of all ranks, with the numbers of this process's first rank. */
static int run_threads(int count, const thread_rank *first)
{
    thread_rank ranks[PERF_MOST_THREADS];
    for (int i = 0; i < count; i++) {
        ranks[i] = *first;
        ranks[i].rank += i;
        ranks[i].local += i;
        ranks[i].thread = i;
    }
    const int started = threads_run(run_rank, ranks, sizeof *ranks, count);
    if (started < count) {
        fprintf(stderr, "ringperf: cannot start more than %d of %d threads; lower -t\n", started,
                count);
        return PERF_EXIT_ERROR;
    }
    int worst = PERF_EXIT_GOOD;
    for (int i = 0; i < count; i++)
        if (ranks[i].exit_status > worst)
            worst = ranks[i].exit_status;
    return worst;
}

/* Rank 0 makes the unique id of the threads' communicator and broadcasts it to all processes. */
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

/* Calls `enter` for each rank in this thread before any thread starts, so that after a failure no
 * thread waits for the others. */
static ring_status try_to_enter(ring_comm *processes, const thread_rank *first, int count)
{
    const char *why_not = NULL;
    for (int i = 0; first->enter && why_not == NULL && i < count; i++)
        why_not = first->enter(first->options, first->local + i);
    if (why_not == NULL)
        return RING_OK;
    ring_comm_abort(processes, why_not);
    return RING_ERR_SYSTEM;
}

static int launch_threads(ring_comm *processes, int count, thread_rank *first)
{
    ring_unique_id id;
    ring_comm_info info = {.size = sizeof info};
    ring_status status = ring_comm_get_info(processes, &info);
    first->rank = info.rank * count;
    first->ranks = info.ranks * count;
    first->local = info.local_rank * count;
    first->local_ranks = info.local_ranks * count;
    first->threads = count;
    first->id = &id;
    if (status == RING_OK)
        status = try_to_enter(processes, first, count);
    if (status == RING_OK)
        status = share_id(processes, &id);
    if (status == RING_OK)
        return run_threads(count, first);
    fprintf(stderr, "ringperf: rank %d: %s\n", info.rank, ring_last_error(processes));
    return PERF_EXIT_ERROR;
}

int launch_ranks(int threads, launch_enter *enter, launch_body *body, const void *options)
{
    ring_comm *comm;
    if (ring_comm_init_env(&comm) != RING_OK) /* libring has printed the reason */
        return PERF_EXIT_ERROR;
    thread_rank first = {.body = body, .options = options, .enter = enter};
    const bool direct = threads == 1 && enter == NULL;
    const int exit_status = direct ? body(options, comm) : launch_threads(comm, threads, &first);
    ring_comm_destroy(comm);
    return exit_status;
}
