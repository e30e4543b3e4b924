/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for works without wasting the CPU. A thread first spins for a moment on the word that the
 * next frame will change. Then it yields its core between engine turns, and finally sleeps
 * (poll_links.c), until the work ends or the deadline passes.
 */
#include "wait.h"

#include "engine.h"
#include "orphans.h"
#include "sleep.h"

/* Passes that spin on one word before a waiting thread yields; see docs/decisions/0007. */
enum { SPIN_LOOKS = 8 };
/* Reads of the word in one such pass. With a core per rank they take about as long as a yield. */
enum { SPIN_READS = 100 };
/* Reads of the word before a waiting thread reads the clock and releases the lock. A peer that
 * answers promptly does so within this time. */
enum { GLANCE_READS = 200 };
/* Passes without progress before a waiting thread advances works of other communicators. */
enum { HELP_LOOKS = 64 };

/* ---- Waiting ------------------------------------------------------------------ */

/* @return the word that changes when the awaited frame arrives; NULL if works wait for several
 * links or are held. */
static const _Atomic uint32_t *only_word(const ring_comm *comm, uint32_t *value)
{
    if (comm->channels.active_count != 1 || comm->works.held != NULL)
        return NULL;
    const channel *c = comm->channels.active[0];
    return channel_wants_out(c) ? NULL : c->link->transport->news(c->link, value);
}

static void spin(const _Atomic uint32_t *word, uint32_t value, unsigned *looks)
{
    ++*looks;
    for (int i = 0; i < SPIN_READS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) == value)
            return;
        cpu_pause();
    }
}

/* Spins briefly with the lock held. @return true if the awaited frame has arrived. */
static bool glance(const ring_comm *comm)
{
    uint32_t value;
    const _Atomic uint32_t *word = comm->crowded ? NULL : only_word(comm, &value);
    for (int i = 0; word != NULL && i < GLANCE_READS; i++)
        if (atomic_load_explicit(word, memory_order_acquire) == value)
            return true;
    return false;
}

/* Spins, yields or sleeps after a pass without progress, and releases the lock meanwhile, so that
 * other threads of this rank get it. */
static void pause_unlocked(ring_comm *comm, unsigned *looks, double deadline)
{
    uint32_t value;
    const _Atomic uint32_t *word = *looks < SPIN_LOOKS && !comm->crowded ? only_word(comm, &value)
                                                                         : NULL;
    if (wait_is_sleepy(*looks)) {
        poll_links(comm, deadline); /* the lock is still held, so the pass is still up to date */
        return;
    }
    comm_unlock(comm);
    if (word == NULL)
        (void)wait_politely(looks, comm->crowded);
    else
        spin(word, value, looks);
    if (*looks % HELP_LOOKS == 0)
        orphans_advance_others(comm);
    comm_lock(comm);
}

/* What a thread waits for: a work, or all works that were started up to `last`. */
typedef struct wait_aim {
    ring_comm *comm;
    const work *work; /* NULL: all works whose numbers are at most `last` */
    uint64_t last;
} wait_aim;

/* @return true if the works have ended, and their on_done functions have returned. */
static bool are_over(const ring_comm *comm, uint64_t last)
{
    const comm_works *works = &comm->works;
    const work *due = works->done;
    if (comm->failure.pending || (works->first != NULL && works->first->number <= last))
        return false;
    while (due != NULL && due->number > last)
        due = due->result.next;
    return due == NULL && (works->told == 0 || works->told > last);
}

static bool is_reached(const wait_aim *aim)
{
    return aim->work != NULL ? aim->work->result.finished : are_over(aim->comm, aim->last);
}

/* @return the longest timeout of the works if all of them wait for events, else 0. */
static double patience_of(const wait_aim *aim)
{
    double longest = 0;
    if (aim->work != NULL)
        return work_awaits_event(aim->work) ? aim->work->wait.timeout : 0;
    for (const work *w = aim->comm->works.first; w != NULL && w->number <= aim->last; w = w->next) {
        if (!work_awaits_event(w))
            return 0;
        longest = w->wait.timeout > longest ? w->wait.timeout : longest;
    }
    return longest;
}

/* @return when to stop waiting. An event that is not set is not a failure of this rank or its
 * peers, so after the calls' timeout only the wait ends, and the calls continue.
 * @param[in,out] gate_deadline  when that timeout ends; 0: it has not started. */
static double give_up_at(const wait_aim *aim, double now, double deadline, double *gate_deadline)
{
    const double patience = patience_of(aim);
    if (patience <= 0)
        return deadline;
    if (*gate_deadline <= 0)
        *gate_deadline = now + patience;
    return deadline > 0 && deadline < *gate_deadline ? deadline : *gate_deadline;
}

static void wait_until(const wait_aim *aim, double deadline)
{
    ring_comm *comm = aim->comm;
    double gate_deadline = 0;
    unsigned looks = 0;
    if (!is_reached(aim))
        (void)glance(comm); /* the first answer often arrives within a few reads */
    while (!is_reached(aim)) {
        if (engine_turn(comm, TURN_BYTES))
            looks = 0;
        if (is_reached(aim))
            return;
        if (looks == 0) {
            looks = 1;
            if (glance(comm))
                continue;
        }
        const double now = clock_now(), end = give_up_at(aim, now, deadline, &gate_deadline);
        if (end > 0 && now >= end)
            return;
        engine_look(comm, now);
        if (!is_reached(aim))
            pause_unlocked(comm, &looks, end > 0 ? end : now + 1);
    }
}

bool wait_between_looks(unsigned *looks)
{
    if (wait_is_sleepy(*looks))
        return true;
    (void)wait_politely(looks, false);
    if (*looks % HELP_LOOKS == 0)
        orphans_advance_others(NULL);
    return false;
}

ring_status wait_for_work(work *w, double deadline)
{
    ring_comm *comm = w->comm;
    w->result.waiters++;
    work_set_orphan(w, false);
    comm_count_waiter(comm, 1);
    wait_until(&(wait_aim){.comm = comm, .work = w}, deadline);
    comm_count_waiter(comm, -1);
    if (--w->result.waiters == 0 && !w->result.finished)
        work_set_orphan(w, true);
    return w->result.finished ? RING_OK : RING_IN_PROGRESS;
}

ring_status wait_for_all(ring_comm *comm, double deadline)
{
    const wait_aim aim = {.comm = comm, .last = comm->works.started};
    comm_count_waiter(comm, 1);
    wait_until(&aim, deadline);
    comm_count_waiter(comm, -1);
    return is_reached(&aim) ? RING_OK : RING_IN_PROGRESS;
}
