/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the loop of the progress thread. The loop advances orphans as fast as a waiting thread
 * would, sleeps while there are no orphans, and starts calls when a graph's replay reaches them.
 *
 * Callers have priority: the loop takes a communicator's lock only if it is free, holds it for a
 * short turn, and skips communicators with waiting threads. comm_unlock() wakes it if orphans are
 * left. Over links for which a core copies, the loop could take time from ranks that compute, so it
 * yields its core before each turn and does not spin if another thread uses the core.
 */
#include "calls.h"
#include "members.h"
#include "orphans.h"
#include "progress_thread.h"
#include "sleep.h"

#include <sched.h>
#include <unistd.h>

/* ---- Is its core shared? --------------------------------------------------------------- */

/* A yield that takes this long gave the core to a busy thread. */
static const double long_yield = 1e-4;
/* Yields the core before a turn. @return true if another thread used it. */
static bool shares_core(void)
{
    const double before = clock_now();
    sched_yield();
    return clock_now() - before >= long_yield;
}

/* ---- Moving ---------------------------------------------------------------------------- */

/* Passes without progress before the thread sleeps: it spins, then yields, for some tens of
 * microseconds in all. */
enum { SPIN_LOOKS = 8, VAIN_LOOKS = 72 };
/* Seconds of the shortest and the longest sleep on links, which doubles in between. The longest
 * sleep bounds the delay of events that no descriptor reports. */
static const double least_pause = 1e-3, most_pause = 50e-3;
/* The sleep without polling links, used when callers wait for calls as soon as they start them. */
enum { DOZE_MS = 1 };

typedef struct progress_loop {
    unsigned looks; /* passes without progress */
    bool pending;   /* some works may move soon, and no thread waits for them */
    bool crowded;   /* ranks share cores, so it must not spin */
    bool shares;    /* it shares this core with a thread that computes */
    bool useful;    /* it has moved something since its last sleep */
    bool dozed;     /* it has dozed, and no kick came meanwhile */
    double pause;   /* seconds of the next sleep on links */
    poll_list sleep;
} progress_loop;

/* @return true if a core copies for this communicator's links, so that the loop should give way to
 * threads that compute. */
static bool is_paced(const ring_comm *comm)
{
    return comm->links.maps_all && comm->settings.progress == PROGRESS_AUTO;
}

/* Runs one engine turn for each communicator with orphans, and yields the core before the first
 * paced one. @return true if anything moved. */
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

static void await_bell(int ms)
{
    struct pollfd bell = {.fd = progress.bell, .events = POLLIN};
    (void)poll(&bell, 1, ms);
}

/* Sleeps for a moment. A kick during a doze costs its caller no system call. */
static void doze(progress_loop *loop)
{
    await_bell(DOZE_MS);
    loop->dozed = !atomic_exchange(&progress.kicked, false);
}

/* Adds all communicators to the poll list, except those whose locks are taken: their threads kick
 * when they unlock, because `idle` is set. */
static void enter_all(progress_loop *loop)
{
    for (ring_comm *c = members_next(NULL); c != NULL; c = members_next(c)) {
        if (!c->sleep.by_thread || !comm_try_lock(c))
            continue;
        members_hold(c);
        if (!poll_list_add(&loop->sleep, c))
            members_let_go(c);
        comm_unlock(c); /* kicks if the poll list does not cover all that works wait for */
    }
}

static void sleep_until_called(progress_loop *loop)
{
    const double now = clock_now();
    poll_list *s = &loop->sleep;
    uint64_t rings;
    atomic_store(&progress.idle, true);
    atomic_exchange(&progress.kicked, false);
    poll_list_add_descriptor(s, progress.bell);
    enter_all(loop);
    if (s->comm_count == 0 && !s->awake) {
        await_bell(-1);
    } else {
        poll_list_sleep(s, now + loop->pause);
        loop->pause = 2 * loop->pause < most_pause ? 2 * loop->pause : most_pause;
    }
    if (!atomic_exchange(&progress.idle, false)) /* it was kicked */
        loop->pause = least_pause;
    atomic_store(&progress.kicked, false);
    for (size_t i = 0; i < s->comm_count; i++)
        members_let_go(s->comms[i]->comm);
    s->comm_count = s->used = 0;
    s->awake = false;
    s->step = 0;
    const ssize_t got = read(progress.bell, &rings, sizeof rings);
    (void)got; /* the bell is only drained */
    loop->useful = loop->dozed = false;
}

/* Waits after a pass without progress: spins and yields at first, unless the core is shared, and
 * then sleeps. */
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

/* ---- The thread ------------------------------------------------------------------------ */

static void *run(void *unused)
{
    progress_loop loop = {.pause = least_pause};
    pthread_setname_np(pthread_self(), "ring-progress");
    while (!atomic_load(&progress.stopping)) {
        if (!take_turn_of_each(&loop))
            rest(&loop);
    }
    poll_list_free(&loop.sleep);
    return unused;
}

__attribute__((constructor)) static void set_up(void)
{
    progress.body = run;
}
