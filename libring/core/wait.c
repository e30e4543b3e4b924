/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress and polite waiting: spin a little, yield, then sleep in the kernel on exactly the
 * links that the works wait for, until the deadline.
 */
#include "comm.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A sleep never lasts longer, so that deadlines and the other threads' progress are seen. */
enum { SLEEP_MS = 50 };
/* A stall this long makes ranks compare their calls. */
static const double stall_seconds = 0.5;

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

/* ---- Progress ---------------------------------------------------------------- */

static void finish_all(ring_comm *comm, ring_status status)
{
    for (int lane = 0; lane < TRANSPORT_LANES; lane++) {
        for (ring_work *w = comm->queue[lane]; w != NULL; w = w->next) {
            if (!w->finished)
                w->status = status;
            w->finished = true;
        }
    }
}

static void forget_wants(ring_comm *comm)
{
    for (int p = 0; p < comm->ranks; p++)
        for (int lane = 0; lane < TRANSPORT_LANES; lane++)
            comm->peers[p].wants_recv[lane] = comm->peers[p].wants_send[lane] = false;
}

/* Pushes what links hold back, for those that somebody waits on. */
static ring_status push_links(ring_comm *comm)
{
    for (int p = 0; p < comm->ranks; p++) {
        for (int lane = 0; lane < TRANSPORT_LANES; lane++) {
            transport_link *l = comm->peers[p].lanes[lane];
            if (l != NULL && (comm->peers[p].wants_send[lane] || comm->peers[p].wants_recv[lane]))
                RING_TRY(l->transport->progress(l));
        }
    }
    return RING_OK;
}

/* Finished works stay queued until their caller waits for them; they hold up nobody. */
static void advance_lane(ring_comm *comm, int lane, bool *moved)
{
    for (ring_work *w = comm->queue[lane]; w != NULL; w = w->next) {
        if (w->finished)
            continue;
        const ring_status status = work_advance(w, moved);
        if (status == RING_OK || status == RING_IN_PROGRESS)
            continue;
        comm_fail(comm, w, status);
        return;
    }
}

/* The verdict comes first: after it peers may have taken their buffers back. */
void comm_progress(ring_comm *comm, bool *moved)
{
    forget_wants(comm);
    for (int lane = 0; lane < TRANSPORT_LANES && comm_verdict(comm) == RING_OK; lane++)
        advance_lane(comm, lane, moved);
    const ring_status verdict = comm_verdict(comm);
    if (verdict != RING_OK)
        finish_all(comm, verdict);
    else if (!*moved && push_links(comm) != RING_OK)
        log_debug("%s", fail_text()); /* it shows again where a work needs the link */
    if (*moved && atomic_load(&comm->sleeper->sleepers) > 0)
        sleeper_wake(comm);
}

/* ---- Sleep ------------------------------------------------------------------- */

static bool wanted(const ring_comm *comm, int p, int lane)
{
    return comm->peers[p].wants_recv[lane] || comm->peers[p].wants_send[lane];
}

/* Only frames that nobody has looked at are news to a link. */
static bool arm_link(const comm_peer *peer, int lane)
{
    transport_link *l = peer->lanes[lane];
    const transport_frame *frame;
    const void *payload;
    if (!peer->wants_recv[lane])
        (void)l->transport->peek(l, &frame, &payload);
    return l->transport->arm(l, peer->wants_send[lane]);
}

/* @return number of entries, or 0 if a link has something already. */
static nfds_t arm_links(ring_comm *comm, struct pollfd *entries)
{
    nfds_t used = 0;
    entries[used++] = (struct pollfd){.fd = comm->sleeper->wake_fd, .events = POLLIN};
    for (int p = 0; p < comm->ranks; p++) {
        for (int lane = 0; lane < TRANSPORT_LANES; lane++) {
            transport_link *l = comm->peers[p].lanes[lane];
            if (l == NULL || !wanted(comm, p, lane))
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

static void unlocked_poll(ring_comm *comm, struct pollfd *entries, nfds_t used, double deadline)
{
    pthread_mutex_unlock(&comm->lock);
    if (used > 0)
        poll(entries, used, clock_ms_until(deadline, SLEEP_MS));
    else
        sched_yield();
    pthread_mutex_lock(&comm->lock);
}

/* The lock is held on entry and on return, not in between. */
static void sleep_until_something(ring_comm *comm, double deadline)
{
    enum { FEW = 1 + TRANSPORT_LANES * 64 };
    struct pollfd few[FEW];
    const size_t most = 1 + (size_t)comm->ranks * TRANSPORT_LANES;
    struct pollfd *all = most <= FEW ? few : calloc(most, sizeof *all);
    atomic_fetch_add(&comm->sleeper->sleepers, 1);
    unlocked_poll(comm, all, all != NULL ? arm_links(comm, all) : 0, deadline);
    wake_up(comm);
    if (all != few)
        free(all);
}

/* ---- Waiting ------------------------------------------------------------------ */

static ring_status timed_out(const ring_work *work)
{
    if (work->waits_for < 0)
        return fail(RING_ERR_TIMEOUT, "not finished before its deadline (RING_TIMEOUT or "
                    "ring_call.timeout)");
    return fail(RING_ERR_TIMEOUT, "not finished before its deadline (RING_TIMEOUT or "
                "ring_call.timeout), waiting for rank %d (%s)", work->waits_for,
                work->comm->world->cards[work->waits_for].hostname);
}

static void check_deadline(ring_work *work, double now)
{
    if (now < work->deadline)
        return;
    comm_fail(work->comm, work, timed_out(work));
    finish_all(work->comm, comm_verdict(work->comm));
}

static ring_work *first_unfinished(const ring_comm *comm, int lane)
{
    ring_work *w = comm->queue[lane];
    while (w != NULL && w->finished)
        w = w->next;
    return w;
}

/* @param since  when the stall began, 0 before it. Compares again and again: a peer's notice
 * may come later than this rank's look. */
static void check_stall(ring_comm *comm, double *since, double now)
{
    ring_work *stuck = first_unfinished(comm, TRANSPORT_COLLECTIVE);
    if (*since == 0)
        *since = now;
    if (stuck == NULL || now - *since < stall_seconds)
        return;
    *since = now;
    const ring_status status = message_compare_calls(stuck);
    if (status != RING_OK)
        comm_fail(comm, stuck, status);
}

static void wait_finished(ring_work *work)
{
    ring_comm *comm = work->comm;
    unsigned turns = 0;
    double stalled = 0;
    while (!work->finished) {
        bool moved = false;
        comm_progress(comm, &moved);
        if (work->finished)
            break;
        if (moved) {
            turns = 0;
            stalled = 0;
        }
        pthread_mutex_unlock(&comm->lock); /* lets other threads of this rank in */
        const bool sleepy = wait_politely(&turns);
        pthread_mutex_lock(&comm->lock);
        if (!sleepy || work->finished)
            continue;
        const double now = clock_now();
        check_deadline(work, now);
        if (!work->finished)
            check_stall(comm, &stalled, now);
        if (!work->finished)
            sleep_until_something(comm, work->deadline);
    }
}

bool comm_overdue(ring_work *work)
{
    if (!work->finished)
        check_deadline(work, clock_now());
    return work->finished;
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

/* ---- A thread that advances works while the caller computes ---------------------- */

struct progress_thread {
    pthread_t thread;
    pthread_cond_t kicked;
    bool stop;
};

static bool idle(const ring_comm *comm)
{
    for (int lane = 0; lane < TRANSPORT_LANES; lane++)
        if (first_unfinished(comm, lane) != NULL)
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
        if (moved) /* lets the callers in */
            unlocked_poll(comm, NULL, 0, 0);
        else
            sleep_until_something(comm, clock_now() + 1.0);
    }
    pthread_mutex_unlock(&comm->lock);
    return NULL;
}

/* Signals are for the program's own threads. */
static int start_masked(pthread_t *thread, ring_comm *comm)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(thread, NULL, progress_main, comm);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

ring_status progress_start(ring_comm *comm)
{
    struct progress_thread *p = calloc(1, sizeof *p);
    if (p == NULL)
        return fail(RING_ERR_MEMORY, "creating the progress thread");
    pthread_cond_init(&p->kicked, NULL);
    comm->progress = p;
    errno = start_masked(&p->thread, comm);
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
