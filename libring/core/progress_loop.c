/* SPDX-License-Identifier: Apache-2.0
 *
 * The body of the progress thread. It moves orphans as fast as a waiter would, sleeps while there
 * are none, and starts calls that graphs have come to.
 *
 * Callers come first: it takes a communicator's lock only when it is free, for a short turn, and
 * skips communicators with waiting threads. comm_unlock() wakes it if orphans are left. Over links
 * for which a core copies, it would take time from ranks that compute: so it yields its core before
 * each turn, and does not spin where another thread takes the core.
 */
#include "calls.h"
#include "members.h"
#include "orphans.h"
#include "prepared.h"
#include "progress_thread.h"
#include "sleep.h"
#include "streams.h"

#include <sched.h>
#include <unistd.h>

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
static const double least_pause = 1e-3, most_pause = 50e-3;
/* The sleep without links, where callers wait at once for the calls that they start. */
enum { DOZE_MS = 1 };

typedef struct progress_loop {
    unsigned looks; /* without progress */
    bool pending;   /* some works may go on soon, and no thread waits for them */
    bool crowded;   /* ranks share cores: no spinning */
    bool shares;    /* this core, with a thread that computes */
    bool useful;    /* it has moved something since it slept */
    bool dozed;     /* and without a kick meanwhile */
    double pause;
    poll_list sleep;
} progress_loop;

/* Mapped links are moved by a core that copies. */
static bool is_paced(const ring_comm *comm)
{
    return comm->links.maps_all && comm->settings.progress == PROGRESS_AUTO;
}

/* A turn of each communicator. Before those over links for which a core copies, it yields the core.
 * @return true if anything moved. */
static bool advance_all(progress_loop *loop)
{
    bool moved = false, offered = false;
    loop->pending = loop->crowded = loop->shares = false;
    for (ring_comm *c = members_next(NULL); c != NULL; c = members_next(c)) {
        if (!c->sleep.by_thread)
            continue;
        if (is_paced(c) && !offered)
            loop->shares = shares_core();
        offered |= is_paced(c);
        const orphans_turn seen = orphans_advance(c);
        moved |= seen == ORPHANS_MOVED;
        loop->pending |= seen != ORPHANS_BUSY;
        loop->crowded |= c->crowded;
    }
    return moved;
}

static bool take_turn_of_each(progress_loop *loop)
{
    const bool moved = advance_all(loop);
    if (moved) {
        loop->looks = 0;
        loop->pause = least_pause;
        loop->useful = true;
    }
    return moved;
}

/* ---- Sleeping -------------------------------------------------------------------------- */

static void drain_bell(void)
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
static void doze(progress_loop *loop)
{
    await_bell(DOZE_MS);
    loop->dozed = !atomic_exchange(&progress.kicked, false);
}

/* Skips communicators that another thread uses: that thread kicks on unlocking, as `idle` is
 * set. */
static void enter_all(progress_loop *loop)
{
    for (ring_comm *c = members_next(NULL); c != NULL; c = members_next(c)) {
        if (!c->sleep.by_thread || !comm_try_lock(c))
            continue;
        members_hold(c);
        if (!poll_list_add(&loop->sleep, c))
            members_let_go(c);
        comm_unlock(c); /* kicks if the sleep does not cover all */
    }
}

static void leave_all(poll_list *s)
{
    for (size_t i = 0; i < s->comm_count; i++)
        members_let_go(s->comms[i]->comm);
    s->comm_count = s->used = 0;
    s->awake = false;
    s->step = 0;
}

static void sleep_on_links(progress_loop *loop, double now)
{
    poll_list_sleep(&loop->sleep, now + loop->pause);
    loop->pause = 2 * loop->pause < most_pause ? 2 * loop->pause : most_pause;
}

static void sleep_until_called(progress_loop *loop)
{
    const double now = clock_now();
    atomic_store(&progress.idle, true);
    atomic_exchange(&progress.kicked, false);
    poll_list_add_descriptor(&loop->sleep, progress.bell);
    enter_all(loop);
    if (loop->sleep.comm_count == 0 && !loop->sleep.awake)
        await_bell(-1);
    else
        sleep_on_links(loop, now);
    if (!atomic_exchange(&progress.idle, false)) /* called */
        loop->pause = least_pause;
    atomic_store(&progress.kicked, false);
    leave_all(&loop->sleep);
    drain_bell();
    loop->useful = loop->dozed = false;
}

/* After a pass without progress. On a shared core it does not spin. */
static void rest(progress_loop *loop)
{
    const unsigned look = loop->looks++;
    if (loop->pending && !loop->crowded && look < VAIN_LOOKS && !loop->shares) {
        if (look < SPIN_LOOKS)
            cpu_pause();
        else if (!clock_yield())
            loop->looks = VAIN_LOOKS;
        return;
    }
    if (!loop->pending && !loop->useful && !loop->dozed)
        doze(loop);
    else
        sleep_until_called(loop);
}

/* ---- Calls of graphs ------------------------------------------------------------------- */

static void start_one(const prepared_call *kept, accelerator_stop *stop)
{
    work *none;
    prepared_call c;
    if (!prepared_hold(kept, &c))
        return;
    c.stop = stop;
    comm_lock(c.comm);
    (void)call_launch(&c, true, &none); /* errors end the communicator, which reports them */
    comm_unlock(c.comm);
    members_let_go(c.comm);
}

/* Starts the calls that a replay has come to. Without the stop the graph, and its calls, may be
 * destroyed. */
static void start_behind(accelerator_stop *stop)
{
    for (const prepared_call *c = stop->call; c != NULL; c = c->next)
        start_one(c, stop);
    stop_drop(&stop);
}

static void start_calls(progress_loop *loop)
{
    accelerator_stop *stop;
    while ((stop = progress_next_start()) != NULL) {
        start_behind(stop);
        loop->looks = 0;
        loop->useful = true;
    }
}

static void *run(void *unused)
{
    progress_loop loop = {.pause = least_pause};
    pthread_setname_np(pthread_self(), "ring-progress");
    while (!atomic_load(&progress.stopping)) {
        start_calls(&loop);
        if (!take_turn_of_each(&loop))
            rest(&loop);
    }
    start_calls(&loop);
    poll_list_free(&loop.sleep);
    return unused;
}

__attribute__((constructor)) static void set_up(void)
{
    progress.body = run;
}
