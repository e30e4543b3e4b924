/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress thread: one a process, for all its communicators of several ranks. It moves works
 * that nobody waits for as fast as a waiter would, and is asleep while there are none.
 *
 * It makes way for callers: it takes a communicator's lock only when it is free, for a short turn,
 * and leaves those that somebody waits for. Whoever gives up a lock and leaves orphans behind wakes
 * it (comm_unlock). Over links for which a core copies it would take from ranks that compute what
 * it gives to their calls: so it looks how much of its core it gets, and works in short bursts
 * while it shares it.
 */
#include "comm.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    pthread_t thread;
    size_t users; /* communicators */
    int bell;
    bool made, ending, failed;
    atomic_bool stopping;
    atomic_bool idle;   /* a kick has something to do: the thread sleeps, or there is none */
    atomic_bool kicked; /* while it was awake */
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER, .bell = -1, .idle = true};

/* ---- How much of its core it gets ------------------------------------------------------ */

/* A stretch of work is judged when it was so long. */
static const double stretch_seconds = 1e-3;
/* Less of it on the core: the core is shared. */
#define OWN_SHARE 0.8
/* Pauses between bursts on a shared core double from one to the other. */
static const double least_pause = 2e-3, most_pause = 32e-3;

typedef struct pace {
    bool running;     /* a stretch began at: */
    double wall, cpu; /* seconds             */
    double done_wall, done_cpu;
    double pause, until; /* 0: at full rate */
} pace;

static double thread_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

static void begin_stretch(pace *p)
{
    if (p->running)
        return;
    p->running = true;
    p->wall = clock_now();
    p->cpu = thread_seconds();
}

static void judge(pace *p, double now)
{
    const bool shares = p->done_cpu < OWN_SHARE * p->done_wall;
    const double longer = p->pause > 0 ? 2 * p->pause : least_pause;
    p->done_wall = p->done_cpu = 0;
    p->pause = !shares ? 0 : longer < most_pause ? longer : most_pause;
    p->until = shares ? now + p->pause : 0;
}

/* @param moved  the stretch goes on, until it is long enough. */
static void end_pass(pace *p, bool moved)
{
    const double now = clock_now();
    if (moved && now - p->wall < stretch_seconds)
        return;
    p->done_wall += now - p->wall;
    p->done_cpu += thread_seconds() - p->cpu;
    p->running = false;
    if (p->done_wall >= stretch_seconds)
        judge(p, now);
}

/* ---- Moving ---------------------------------------------------------------------------- */

/* Looks in vain before it sleeps: spinning, then yielding. Some tens of microseconds. */
enum { SPIN_LOOKS = 8, VAIN_LOOKS = 72 };
/* Sleeps on links grow from one length to the other: what no descriptor tells is seen after them.
 */
static const double least_nap = 1e-3, most_nap = 50e-3;
/* It sleeps so long on no bell where callers wait at once for what they start. */
enum { DOZE_MS = 1 };

typedef struct mover {
    pace pace;
    unsigned looks; /* in vain */
    bool pending;   /* some works may go on soon, and nobody waits for them */
    bool crowded;   /* ranks share cores: no spinning */
    bool paced;     /* some communicators are those of ranks that may compute on this core */
    bool useful;    /* it has moved something since it slept */
    bool dozed;     /* and nobody has called meanwhile */
    double nap;
    sleep_list sleep;
} mover;

/* Links that map are moved by a core. */
static bool is_paced(const ring_comm *comm)
{
    return comm->maps_all && comm->settings.progress == PROGRESS_AUTO;
}

static bool rests(const mover *m, const ring_comm *comm, double now)
{
    return !comm->by_thread || (now < m->pace.until && is_paced(comm));
}

/* A turn of each communicator. @return true if anything moved. */
static bool move(mover *m)
{
    bool moved = false;
    const double now = m->pace.pause > 0 ? clock_now() : 0;
    m->pending = m->paced = m->crowded = false;
    for (ring_comm *c = members_next(NULL); c != NULL; c = members_next(c)) {
        if (rests(m, c, now))
            continue;
        const visit seen = members_visit(c);
        moved |= seen == VISIT_MOVED;
        m->pending |= seen != VISIT_LEFT;
        m->paced |= is_paced(c);
        m->crowded |= c->crowded;
    }
    return moved;
}

static bool take_turns(mover *m)
{
    if (m->paced)
        begin_stretch(&m->pace);
    const bool moved = move(m);
    if (m->pace.running)
        end_pass(&m->pace, moved);
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
    (void)got; /* only emptied */
}

static void await_bell(int ms)
{
    struct pollfd bell = {.fd = progress.bell, .events = POLLIN};
    (void)poll(&bell, 1, ms);
}

/* Meanwhile kicks cost their callers no system call. */
static void doze(mover *m)
{
    await_bell(DOZE_MS);
    m->dozed = !atomic_exchange(&progress.kicked, false);
}

/* Communicators that somebody is at are left out: whoever leaves them kicks, for `idle` is set. */
static void enter_all(mover *m, double now)
{
    for (ring_comm *c = members_next(NULL); c != NULL; c = members_next(c)) {
        if (rests(m, c, now) || !members_try_lock(c))
            continue;
        members_hold(c);
        sleep_list_add(&m->sleep, c);
        comm_unlock(c); /* kicks if the sleep does not cover all */
    }
}

static void leave_all(sleep_list *s)
{
    for (size_t i = 0; i < s->comm_count; i++)
        members_let_go(s->comms[i]);
    s->comm_count = s->used = 0;
    s->awake = false;
}

static void sleep_on_bell(const pace *p, double now)
{
    await_bell(now < p->until ? clock_ms_until(p->until, (int)(1e3 * most_pause)) : -1);
}

static void sleep_on_links(mover *m, double now)
{
    const double end = now + m->nap;
    sleep_list_sleep(&m->sleep, now < m->pace.until && m->pace.until < end ? m->pace.until : end);
    m->nap = 2 * m->nap < most_nap ? 2 * m->nap : most_nap;
}

static void sleep_until_called(mover *m)
{
    const double now = clock_now();
    atomic_store(&progress.idle, true);
    atomic_exchange(&progress.kicked, false);
    sleep_list_add_descriptor(&m->sleep, progress.bell);
    enter_all(m, now);
    if (m->sleep.comm_count == 0 && !m->sleep.awake)
        sleep_on_bell(&m->pace, now);
    else
        sleep_on_links(m, now);
    if (!atomic_exchange(&progress.idle, false)) /* called */
        m->nap = least_nap;
    atomic_store(&progress.kicked, false);
    leave_all(&m->sleep);
    hear_bell();
    m->useful = m->dozed = false;
}

/* A pass in vain. On a shared core it does not spin. */
static void rest(mover *m)
{
    const unsigned look = m->looks++;
    if (m->pending && !m->crowded && look < VAIN_LOOKS && m->pace.pause <= 0) {
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

static void *run(void *unused)
{
    mover m = {.nap = least_nap};
    pthread_setname_np(pthread_self(), "ring-progress");
    while (!atomic_load(&progress.stopping))
        if (!take_turns(&m))
            rest(&m);
    sleep_list_free(&m.sleep);
    return unused;
}

/* ---- Life ------------------------------------------------------------------------------ */

static void ring_bell(void)
{
    const uint64_t one = 1;
    const ssize_t put = write(progress.bell, &one, sizeof one);
    (void)put; /* full only when it rings already */
}

/* Locked. Without the thread works go on in calls alone. */
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

/* Both this exchange and that in sleep_until_called() change one word: either the thread then sees
 * what the caller left behind, or the caller sees that it is idle. */
void progress_kick(void)
{
    atomic_exchange(&progress.kicked, true);
    if (atomic_load(&progress.idle))
        rouse();
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
    const bool again = progress.users > 0; /* who came meanwhile may have called in vain */
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
    no_thread();
}
