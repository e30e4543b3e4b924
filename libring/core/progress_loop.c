/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the loop of the progress thread. The loop advances orphans as fast as a waiting thread
 * would, sleeps while there are no orphans, and starts calls when a graph's replay reaches them.
 *
 * Callers have priority: the loop takes a communicator's lock only if it is free, holds it for a
 * short turn, and skips communicators with waiting threads. comm_unlock() wakes the loop if it
 * leaves orphans. Over links through shared memory, the loop copies the data itself and could take
 * time from ranks that compute. It therefore yields its core before each pass, and does not spin if
 * another thread uses the core.
 */
#include "calls.h"
#include "members.h"
#include "orphans.h"
#include "progress_thread.h"
#include "sleep.h"

#include <sched.h>
#include <unistd.h>

/* ---- Engine turns ------------------------------------------------------------------------ */

/* If a yield takes this many seconds, a busy thread has used the core. */
static const double long_yield = 1e-4;
/* Consecutive passes without progress after which the thread yields instead of spinning, and after
 * which it sleeps. It sleeps after some tens of microseconds in all. */
enum { SPIN_LOOKS = 8, VAIN_LOOKS = 72 };
/* Seconds of the shortest and the longest sleep on links. Each sleep is twice as long as the one
 * before, until something moves. The longest sleep bounds the delay of events that no descriptor
 * reports. */
static const double least_pause = 1e-3, most_pause = 50e-3;
/* Milliseconds of a doze, which is a sleep without polling links. The thread dozes while there is
 * nothing to poll, because callers wait for their calls themselves. */
enum { DOZE_MS = 1 };

typedef struct progress_loop {
    unsigned looks; /* passes without progress */
    bool pending;   /* some works may move soon, and no thread waits for them */
    bool crowded;   /* ranks share cores, so the thread must not spin */
    bool shares;    /* the thread shares its core with a thread that computes */
    bool useful;    /* something has moved since the thread's last sleep */
    bool dozed;     /* the thread has dozed, and no kick has arrived during the doze */
    double pause;   /* seconds of the next sleep on links */
    poll_list sleep;
} progress_loop;

/* Runs one engine turn for each communicator with orphans. Before the first one whose links copy
 * data with a core, yields the core to threads that compute. @return true if anything moved. */
static bool advance_all(progress_loop *loop)
{
    bool moved = false, offered = false;
    loop->pending = loop->crowded = loop->shares = false;
    for (ring_comm *c = members_next(NULL); c != NULL; c = members_next(c)) {
        if (!c->sleep.by_thread)
            continue;
        if (c->links.maps_all && c->settings.progress == PROGRESS_AUTO && !offered) {
            const double before = clock_now();
            sched_yield();
            loop->shares = clock_now() - before >= long_yield;
            offered = true;
        }
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

/* Sleeps for DOZE_MS. `idle` is not set, so a caller that kicks the thread makes no system call. */
static void doze(progress_loop *loop)
{
    await_bell(DOZE_MS);
    loop->dozed = !atomic_exchange(&progress.kicked, false);
}

/* Adds all communicators with orphans to the poll list, except those whose locks are taken. Because
 * `idle` is set, the threads that hold these locks kick the progress thread when they unlock. */
static void enter_all(progress_loop *loop)
{
    for (ring_comm *c = members_next(NULL); c != NULL; c = members_next(c)) {
        if (!c->sleep.by_thread || !comm_try_lock(c))
            continue;
        members_hold(c);
        if (!poll_list_add(&loop->sleep, c))
            members_let_go(c);
        comm_unlock(c); /* kicks the thread if works wait for anything that it does not poll */
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
    (void)got; /* reading only drains the bell */
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
