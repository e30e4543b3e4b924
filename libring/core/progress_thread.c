/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress thread: one a process, for all its communicators of several ranks. It moves orphans
 * (works without a waiting thread) as fast as a waiter would, and sleeps while there are none.
 *
 * Callers come first: it takes a communicator's lock only when it is free, for a short turn, and
 * skips communicators with waiting threads. comm_unlock() wakes it if orphans are left. Over links
 * for which a core copies, it would take time from ranks that compute: so it yields its core before
 * each turn, and does not spin where another thread takes the core.
 */
#include "streams.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    pthread_t thread;
    size_t users; /* communicators */
    int bell;
    bool made, ending, failed;
    atomic_bool stopping;
    atomic_bool idle;   /* a kick must wake or make it: the thread sleeps, or there is none */
    atomic_bool kicked; /* while it was awake */
    accelerator_stop *_Atomic starts; /* of calls that graphs have come to, oldest first */
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER, .bell = -1, .idle = true};

/* ---- Is its core shared? --------------------------------------------------------------- */

/* A yield of this length gave the core to a thread that keeps it. */
static const double long_yield = 1e-4;
/* Yields before a turn. @return true if another thread took the core. */
static bool shares_core(void)
{
    const double before = clock_now();
    sched_yield();
    return clock_now() - before >= long_yield;
}

/* ---- Moving ---------------------------------------------------------------------------- */

/* Looks without progress before it sleeps: spinning, then yielding. Some tens of microseconds. */
enum { SPIN_LOOKS = 8, VAIN_LOOKS = 72 };
/* The least and the longest sleep on links: they double. They bound the delay of events that no
 * descriptor reports.
 */
static const double least_nap = 1e-3, most_nap = 50e-3;
/* The sleep without links, where callers wait at once for the calls that they start. */
enum { DOZE_MS = 1 };

typedef struct mover {
    unsigned looks; /* without progress */
    bool pending;   /* some works may go on soon, and no thread waits for them */
    bool crowded;   /* ranks share cores: no spinning */
    bool shares;    /* this core, with a thread that computes */
    bool useful;    /* it has moved something since it slept */
    bool dozed;     /* and without a kick meanwhile */
    double nap;
    sleep_list sleep;
} mover;

/* Mapped links are moved by a core that copies. */
static bool is_paced(const ring_comm *comm)
{
    return comm->maps_all && comm->settings.progress == PROGRESS_AUTO;
}

/* A turn of each communicator. Before those over links for which a core copies, it yields the core.
 * @return true if anything moved. */
static bool move(mover *m)
{
    bool moved = false, offered = false;
    m->pending = m->crowded = m->shares = false;
    for (ring_comm *c = members_next(NULL); c != NULL; c = members_next(c)) {
        if (!c->by_thread)
            continue;
        if (is_paced(c) && !offered)
            m->shares = shares_core();
        offered |= is_paced(c);
        const visit seen = members_visit(c);
        moved |= seen == VISIT_MOVED;
        m->pending |= seen != VISIT_LEFT;
        m->crowded |= c->crowded;
    }
    return moved;
}

static bool take_turn_of_each(mover *m)
{
    const bool moved = move(m);
    if (moved) {
        m->looks = 0;
        m->nap = least_nap;
        m->useful = true;
    }
    return moved;
}

/* ---- Sleeping -------------------------------------------------------------------------- */

static void hear_bell(void)
{
    uint64_t rings;
    const ssize_t got = read(progress.bell, &rings, sizeof rings);
    (void)got; /* it is only emptied */
}

static void await_bell(int ms)
{
    struct pollfd bell = {.fd = progress.bell, .events = POLLIN};
    (void)poll(&bell, 1, ms);
}

/* During a doze kicks cost their callers no system call. */
static void doze(mover *m)
{
    await_bell(DOZE_MS);
    m->dozed = !atomic_exchange(&progress.kicked, false);
}

/* Skips communicators that another thread uses: that thread kicks on unlocking, as `idle` is
 * set. */
static void enter_all(mover *m)
{
    for (ring_comm *c = members_next(NULL); c != NULL; c = members_next(c)) {
        if (!c->by_thread || !members_try_lock(c))
            continue;
        members_hold(c);
        if (!sleep_list_add(&m->sleep, c))
            members_let_go(c);
        comm_unlock(c); /* kicks if the sleep does not cover all */
    }
}

static void leave_all(sleep_list *s)
{
    for (size_t i = 0; i < s->comm_count; i++)
        members_let_go(s->comms[i]);
    s->comm_count = s->used = 0;
    s->awake = false;
    s->step = 0;
}

static void sleep_on_links(mover *m, double now)
{
    sleep_list_sleep(&m->sleep, now + m->nap);
    m->nap = 2 * m->nap < most_nap ? 2 * m->nap : most_nap;
}

static void sleep_until_called(mover *m)
{
    const double now = clock_now();
    atomic_store(&progress.idle, true);
    atomic_exchange(&progress.kicked, false);
    sleep_list_add_descriptor(&m->sleep, progress.bell);
    enter_all(m);
    if (m->sleep.comm_count == 0 && !m->sleep.awake)
        await_bell(-1);
    else
        sleep_on_links(m, now);
    if (!atomic_exchange(&progress.idle, false)) /* called */
        m->nap = least_nap;
    atomic_store(&progress.kicked, false);
    leave_all(&m->sleep);
    hear_bell();
    m->useful = m->dozed = false;
}

/* After a pass without progress. On a shared core it does not spin. */
static void rest(mover *m)
{
    const unsigned look = m->looks++;
    if (m->pending && !m->crowded && look < VAIN_LOOKS && !m->shares) {
        if (look < SPIN_LOOKS)
            cpu_pause();
        else if (!clock_yield())
            m->looks = VAIN_LOOKS;
        return;
    }
    if (!m->pending && !m->useful && !m->dozed)
        doze(m);
    else
        sleep_until_called(m);
}

static accelerator_stop *next_start(void)
{
    if (atomic_load(&progress.starts) == NULL)
        return NULL;
    pthread_mutex_lock(&progress.lock);
    accelerator_stop *stop = progress.starts;
    progress.starts = stop->next;
    pthread_mutex_unlock(&progress.lock);
    return stop;
}

static void start_calls(mover *m)
{
    accelerator_stop *stop;
    while ((stop = next_start()) != NULL) {
        stream_start(stop);
        m->looks = 0;
        m->useful = true;
    }
}

static void *run(void *unused)
{
    mover m = {.nap = least_nap};
    pthread_setname_np(pthread_self(), "ring-progress");
    while (!atomic_load(&progress.stopping)) {
        start_calls(&m);
        if (!take_turn_of_each(&m))
            rest(&m);
    }
    start_calls(&m);
    sleep_list_free(&m.sleep);
    return unused;
}

/* ---- Life ------------------------------------------------------------------------------ */

static void ring_bell(void)
{
    const uint64_t one = 1;
    const ssize_t put = write(progress.bell, &one, sizeof one);
    (void)put; /* EAGAIN: it is readable already */
}

/* Locked. Without the thread only threads inside calls move works. */
static void make(void)
{
    atomic_store(&progress.idle, false);
    progress.bell = fd_guard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    errno = progress.bell >= 0 ? thread_start(&progress.thread, run, NULL) : errno;
    progress.made = errno == 0;
    progress.failed = !progress.made;
    if (progress.made)
        return;
    log_warn("cannot start the progress thread (%s): calls with ring_call.work go on only in calls "
             "of libring, as with RING_PROGRESS=none",
             strerror(errno));
    fd_close(&progress.bell);
}

static void rouse(void)
{
    pthread_mutex_lock(&progress.lock);
    if (progress.made && atomic_exchange(&progress.idle, false))
        ring_bell();
    else if (!progress.made && !progress.failed && progress.users > 0)
        make();
    pthread_mutex_unlock(&progress.lock);
}

/* The exchanges of `kicked` here and in sleep_until_called() order the two threads: either the
 * thread sees the caller's orphans, or the caller sees `idle`. */
void progress_kick(void)
{
    atomic_exchange(&progress.kicked, true);
    if (atomic_load(&progress.idle))
        rouse();
}

/* The bell also ends a doze. */
bool progress_start(accelerator_stop *stop)
{
    pthread_mutex_lock(&progress.lock);
    if (!progress.made && !progress.failed && progress.users > 0)
        make();
    const bool can = progress.made && progress.users > 0;
    if (can) {
        stop->next = NULL;
        accelerator_stop *last = progress.starts;
        while (last != NULL && last->next != NULL)
            last = last->next;
        if (last != NULL)
            last->next = stop;
        else
            progress.starts = stop;
        ring_bell();
    }
    pthread_mutex_unlock(&progress.lock);
    return can;
}

void progress_enter(void)
{
    pthread_mutex_lock(&progress.lock);
    progress.users++;
    pthread_mutex_unlock(&progress.lock);
}

static void no_thread(void)
{
    progress.made = progress.ending = progress.failed = false;
    atomic_store(&progress.stopping, false);
    atomic_store(&progress.idle, true);
}

static void stop_thread(void)
{
    pthread_join(progress.thread, NULL);
    pthread_mutex_lock(&progress.lock);
    fd_close(&progress.bell);
    no_thread();
    const bool again = progress.users > 0; /* a communicator made meanwhile may have kicked without
                                              effect */
    pthread_mutex_unlock(&progress.lock);
    if (again)
        progress_kick();
}

void progress_exit(void)
{
    pthread_mutex_lock(&progress.lock);
    const bool last = --progress.users == 0 && !progress.ending, stops = last && progress.made;
    if (stops) {
        progress.ending = true;
        atomic_store(&progress.stopping, true);
        ring_bell();
    } else if (last) {
        no_thread();
    }
    pthread_mutex_unlock(&progress.lock);
    if (stops)
        stop_thread();
}

void progress_forget(void)
{
    pthread_mutex_init(&progress.lock, NULL);
    progress.users = 0;
    progress.bell = -1;
    progress.starts = NULL;
    no_thread();
}
