/* SPDX-License-Identifier: Apache-2.0
 * A thread that advances works while the caller computes. */
#include "comm.h"

#include <errno.h>
#include <stdlib.h>

struct progress_thread {
    pthread_t thread;
    pthread_cond_t kicked;
    bool stop;
};

static bool idle(const ring_comm *comm)
{
    for (int lane = 0; lane < TRANSPORT_LANES; lane++)
        if (comm->queue[lane].first != NULL)
            return false;
    return true;
}

static void *progress_main(void *context)
{
    ring_comm *comm = context;
    log_set_rank(comm->rank, comm->ranks);
    pthread_mutex_lock(&comm->lock);
    while (!comm->progress->stop) {
        bool moved = false;
        if (idle(comm)) {
            pthread_cond_wait(&comm->progress->kicked, &comm->lock);
            continue;
        }
        comm_progress(comm, &moved);
        if (moved) {
            comm_let_others_in(comm);
            continue;
        }
        comm_look_after(comm);
        comm_sleep(comm, clock_now() + 1.0);
    }
    pthread_mutex_unlock(&comm->lock);
    return NULL;
}

ring_status progress_start(ring_comm *comm)
{
    struct progress_thread *p = calloc(1, sizeof *p);
    if (p == NULL)
        return fail(RING_ERR_MEMORY, "creating the progress thread");
    pthread_cond_init(&p->kicked, NULL);
    comm->progress = p;
    errno = thread_start(&p->thread, progress_main, comm);
    if (errno == 0)
        return RING_OK;
    const ring_status status = fail(RING_ERR_SYSTEM, "starting the progress thread: %m; unset "
                                    "RING_PROGRESS_THREAD");
    comm->progress = NULL;
    pthread_cond_destroy(&p->kicked);
    free(p);
    return status;
}

void progress_stop(ring_comm *comm)
{
    struct progress_thread *p = comm->progress;
    if (p == NULL)
        return;
    pthread_mutex_lock(&comm->lock);
    p->stop = true;
    pthread_cond_signal(&p->kicked);
    pthread_mutex_unlock(&comm->lock);
    sleeper_wake(comm);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->kicked);
    comm->progress = NULL;
    free(p);
}

void progress_kick(ring_comm *comm)
{
    if (comm->progress == NULL)
        return;
    pthread_cond_signal(&comm->progress->kicked);
    sleeper_wake(comm);
}
