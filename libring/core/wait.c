/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress and polite waiting: spin a little, yield, then sleep in the kernel on exactly the
 * links that the works wait for, until the deadline.
 */
#include "comm.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A sleep never lasts longer, so that deadlines and the other threads' progress are seen. */
enum { SLEEP_MS = 50 };
/* A stall this long makes ranks compare their calls. */
static const double stall_seconds = 0.5;

struct sleeper {
    int wake_fd;
    _Atomic int sleepers;
    struct pollfd *entries;
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

void comm_progress(ring_comm *comm, bool *moved)
{
    forget_wants(comm);
    for (int lane = 0; lane < TRANSPORT_LANES; lane++)
        advance_lane(comm, lane, moved);
    if (!*moved)
        push_links(comm); /* a broken link shows again where a work needs it */
    const ring_status verdict = comm_verdict(comm);
    if (verdict != RING_OK)
        finish_all(comm, verdict);
    if (*moved && atomic_load(&comm->sleeper->sleepers) > 0)
        sleeper_wake(comm);
}

/* ---- Sleep ------------------------------------------------------------------- */

static bool wanted(const ring_comm *comm, int p, int lane)
{
    return comm->peers[p].wants_recv[lane] || comm->peers[p].wants_send[lane];
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
            if (!l->transport->arm(l, comm->peers[p].wants_send[lane]))
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
            if (comm->peers[p].lanes[lane] != NULL && wanted(comm, p, lane))
                comm->peers[p].lanes[lane]->transport->disarm(comm->peers[p].lanes[lane]);
}

/* The lock is held on entry and on return, not in between. */
static void sleep_until_something(ring_comm *comm, double deadline)
{
    struct pollfd entries[1 + 2 * TRANSPORT_LANES * 64];
    struct pollfd *all = entries;
    if (comm->ranks > 64) {
        all = calloc(1 + (size_t)comm->ranks * TRANSPORT_LANES, sizeof *all);
        if (all == NULL)
            return; /* waits by spinning instead */
    }
    atomic_fetch_add(&comm->sleeper->sleepers, 1);
    const nfds_t used = arm_links(comm, all);
    if (used > 0) {
        pthread_mutex_unlock(&comm->lock);
        poll(all, used, clock_ms_until(deadline, SLEEP_MS));
        pthread_mutex_lock(&comm->lock);
    }
    disarm_links(comm);
    atomic_fetch_sub(&comm->sleeper->sleepers, 1);
    uint64_t rings;
    const ssize_t ignored = read(comm->sleeper->wake_fd, &rings, sizeof rings);
    (void)ignored;
    if (all != entries)
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

typedef struct stall {
    double since;
    bool compared;
} stall;

static void check_stall(ring_work *work, stall *s, double now)
{
    if (s->since == 0)
        s->since = now;
    if (s->compared || now - s->since < stall_seconds)
        return;
    s->compared = true;
    const ring_status status = message_compare_calls(work);
    if (status != RING_OK)
        comm_fail(work->comm, work, status);
}

static void end_stall(ring_comm *comm, stall *s)
{
    if (s->compared)
        for (int p = 0; p < comm->ranks; p++)
            comm->peers[p].told[TRANSPORT_COLLECTIVE] = false;
    *s = (stall){0};
}

static void wait_finished(ring_work *work)
{
    ring_comm *comm = work->comm;
    unsigned turns = 0;
    stall stalled = {0};
    while (!work->finished) {
        bool moved = false;
        comm_progress(comm, &moved);
        if (work->finished)
            break;
        if (moved) {
            turns = 0;
            end_stall(comm, &stalled);
            continue;
        }
        pthread_mutex_unlock(&comm->lock); /* lets other threads of this rank in */
        const bool sleepy = wait_politely(&turns);
        pthread_mutex_lock(&comm->lock);
        if (!sleepy)
            continue;
        const double now = clock_now();
        check_deadline(work, now);
        check_stall(work, &stalled, now);
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

static ring_work *first_unfinished(const ring_comm *comm)
{
    for (int lane = 0; lane < TRANSPORT_LANES; lane++)
        for (ring_work *w = comm->queue[lane]; w != NULL; w = w->next)
            if (!w->finished)
                return w;
    return NULL;
}

static void *progress_main(void *context)
{
    ring_comm *comm = context;
    log_set_rank(comm->rank, comm->ranks);
    pthread_mutex_lock(&comm->lock);
    while (!comm->progress->stop) {
        bool moved = false;
        if (first_unfinished(comm) == NULL) {
            pthread_cond_wait(&comm->progress->kicked, &comm->lock);
            continue;
        }
        comm_progress(comm, &moved);
        if (!moved && first_unfinished(comm) != NULL)
            sleep_until_something(comm, clock_now() + 1.0);
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
    if (pthread_create(&p->thread, NULL, progress_main, comm) == 0)
        return RING_OK;
    comm->progress = NULL;
    free(p);
    return fail(RING_ERR_SYSTEM, "starting the progress thread: %m; unset RING_PROGRESS_THREAD");
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
    if (comm->progress != NULL)
        pthread_cond_signal(&comm->progress->kicked);
}
