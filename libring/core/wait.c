/* SPDX-License-Identifier: Apache-2.0
 *
 * Polite waiting: spin a little, yield, then sleep in the kernel on exactly the links that the
 * works wait for, until the deadline.
 */
#include "comm.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A sleep never lasts longer, so that deadlines and the other threads' progress are seen. */
enum { SLEEP_MS = 50 };

struct sleeper {
    int wake_fd;
    _Atomic int sleepers; /* threads in poll, or about to be */
};

ring_status sleeper_new(ring_comm *comm)
{
    struct sleeper *s = calloc(1, sizeof *s);
    if (s == NULL)
        return fail(RING_ERR_MEMORY, "creating the waiter");
    comm->sleeper = s;
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->wake_fd < 0)
        return fail(RING_ERR_SYSTEM, "eventfd: %m; raise the limit on open files (ulimit -n)");
    return RING_OK;
}

void sleeper_free(ring_comm *comm)
{
    if (comm->sleeper != NULL)
        fd_close(&comm->sleeper->wake_fd);
    free(comm->sleeper);
}

void sleeper_wake(void *context)
{
    const ring_comm *comm = context;
    const uint64_t one = 1;
    const ssize_t ignored = write(comm->sleeper->wake_fd, &one, sizeof one);
    (void)ignored; /* full means: already readable */
}

/* ---- Sleep ------------------------------------------------------------------- */

/* Only frames that nobody has looked at are news to a link. */
static bool arm_link(const comm_peer *peer, int lane)
{
    transport_link *l = peer->lanes[lane];
    const transport_frame *frame;
    const void *payload;
    if (!peer->turn[lane].wants_recv)
        (void)l->transport->peek(l, &frame, &payload);
    return l->transport->arm(l, peer->turn[lane].wants_send);
}

/* @return number of entries, or 0 if a link has something already. */
static nfds_t arm_links(ring_comm *comm, struct pollfd *entries)
{
    nfds_t used = 0;
    entries[used++] = (struct pollfd){.fd = comm->sleeper->wake_fd, .events = POLLIN};
    for (int p = 0; p < comm->ranks; p++) {
        for (int lane = 0; lane < TRANSPORT_LANES; lane++) {
            transport_link *l = comm->peers[p].lanes[lane];
            if (l == NULL || !link_is_wanted(&comm->peers[p].turn[lane]))
                continue;
            if (!arm_link(&comm->peers[p], lane))
                return 0;
            entries[used++] = (struct pollfd){.fd = l->transport->wake_fd(l), .events = POLLIN};
        }
    }
    return used;
}

static void disarm_links(ring_comm *comm)
{
    for (int p = 0; p < comm->ranks; p++)
        for (int lane = 0; lane < TRANSPORT_LANES; lane++)
            if (comm->peers[p].lanes[lane] != NULL)
                comm->peers[p].lanes[lane]->transport->disarm(comm->peers[p].lanes[lane]);
}

void sleeper_stir(ring_comm *comm)
{
    if (atomic_load(&comm->sleeper->sleepers) > 0)
        sleeper_wake(comm);
}

/* What woke one sleeper may be for another: the last one up clears the bells. */
static void wake_up(ring_comm *comm)
{
    if (atomic_fetch_sub(&comm->sleeper->sleepers, 1) > 1)
        return;
    uint64_t rings;
    const ssize_t ignored = read(comm->sleeper->wake_fd, &rings, sizeof rings);
    (void)ignored;
    disarm_links(comm);
}

void comm_let_others_in(ring_comm *comm)
{
    pthread_mutex_unlock(&comm->lock);
    sched_yield();
    pthread_mutex_lock(&comm->lock);
}

static void poll_unlocked(ring_comm *comm, struct pollfd *entries, nfds_t used, double deadline)
{
    pthread_mutex_unlock(&comm->lock);
    poll(entries, used, clock_ms_until(deadline, SLEEP_MS));
    pthread_mutex_lock(&comm->lock);
}

void comm_sleep(ring_comm *comm, double deadline)
{
    enum { FEW = 1 + TRANSPORT_LANES * 64 };
    struct pollfd few[FEW];
    const size_t most = 1 + (size_t)comm->ranks * TRANSPORT_LANES;
    struct pollfd *all = most <= FEW ? few : calloc(most, sizeof *all);
    atomic_fetch_add(&comm->sleeper->sleepers, 1);
    const nfds_t used = all != NULL ? arm_links(comm, all) : 0;
    if (used > 0)
        poll_unlocked(comm, all, used, deadline);
    else
        comm_let_others_in(comm);
    wake_up(comm);
    if (all != few)
        free(all);
}

/* ---- Waiting ------------------------------------------------------------------ */

static void wait_finished(ring_work *work)
{
    ring_comm *comm = work->comm;
    unsigned turns = 0;
    while (!work->finished) {
        bool moved = false;
        comm_progress(comm, &moved);
        if (work->finished)
            break;
        if (moved)
            turns = 0;
        pthread_mutex_unlock(&comm->lock); /* lets other threads of this rank in */
        const bool sleepy = wait_politely(&turns);
        pthread_mutex_lock(&comm->lock);
        if (!sleepy || work->finished)
            continue;
        comm_look_after(comm);
        if (!work->finished)
            comm_sleep(comm, work->deadline);
    }
}

ring_status comm_wait(ring_work *work)
{
    ring_comm *comm = work->comm;
    wait_finished(work);
    const ring_status status = work->status;
    work_recycle(work);
    if (status != RING_OK)
        fail(status, "%s", comm->error);
    return status;
}
