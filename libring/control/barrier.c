/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the barriers of the start and control_agree(). Barriers are numbered from 1. Each
 * connection stores the number that it has announced, so its next message follows from the
 * counters, and messages need no queue.
 */
#include "barrier.h"

#include "peers.h"
#include "verdict.h"

/* s: the times after the deadline of the start at which a rank proposes that it is late itself, and
 * at which a waiting rank gives up. Between the two, the report of a failing rank can still
 * arrive. */
#define LATE_SECONDS 1.0
#define PATIENCE 2.0

/* @return the latest barrier that this rank and all ranks of its subtree have entered. */
static int reached(const membership *m)
{
    const int children = tree_children(m->world.rank, m->world.size);
    int least = m->barrier.entered;
    for (int i = 0; i < children; i++)
        if (m->barrier.below[i] < least)
            least = m->barrier.below[i];
    return least;
}

/* Sends the messages that follow from a change of the counters. */
static void advance(membership *m)
{
    if (m->world.rank == 0)
        m->barrier.passed = reached(m);
    peers_flush(m);
}

void barrier_receive(membership *m, connection *c, const control_message *message)
{
    const int child = c->peer - tree_first_child(m->world.rank);
    if (message->kind == CONTROL_GO)
        m->barrier.passed = message->count > m->barrier.passed ? message->count : m->barrier.passed;
    else if (child >= 0 && child < tree_children(m->world.rank, m->world.size))
        m->barrier.below[child] = message->count;
    advance(m);
}

bool barrier_compose(membership *m, connection *c, control_message *out)
{
    const int here = reached(m);
    if (!c->edge)
        return false;
    if (c->peer == tree_parent(m->world.rank) && c->announced_ready < here) {
        c->announced_ready = here;
        control_message_begin(out, CONTROL_READY, m->world.rank);
        out->count = here;
        return true;
    }
    if (c->peer < m->world.rank || c->announced_go >= m->barrier.passed)
        return false;
    c->announced_go = m->barrier.passed;
    control_message_begin(out, CONTROL_GO, m->world.rank);
    out->count = m->barrier.passed;
    return true;
}

void barrier_tick(membership *m, double now)
{
    if (m->state != STATE_LINKING || m->barrier.entered > m->barrier.passed ||
        membership_has_failed(m))
        return;
    const double late = m->world.deadline + LATE_SECONDS;
    if (now < late)
        membership_due(m, late);
    else
        verdict_propose_own(m, fail(RING_ERR_TIMEOUT,
                                    "it did not finish the start in time (RING_INIT_TIMEOUT)"));
}

/* ---- For callers ------------------------------------------------------------------- */

/* Fails. The text names the child in whose subtree a rank is missing, else the parent. */
static ring_status too_late(const membership *m)
{
    const int first = tree_first_child(m->world.rank);
    for (int i = 0; i < tree_children(m->world.rank, m->world.size); i++)
        if (m->barrier.below[i] < m->barrier.entered)
            return fail(RING_ERR_TIMEOUT,
                        "rank %d (%s), or a rank that reports to it, did not finish the start in "
                        "time (RING_INIT_TIMEOUT)",
                        first + i, m->world.cards[first + i].hostname);
    return fail(RING_ERR_TIMEOUT, "rank %d (%s) did not answer in time (RING_INIT_TIMEOUT)",
                m->world.rank > 0 ? tree_parent(m->world.rank) : 0,
                m->world.cards[m->world.rank > 0 ? tree_parent(m->world.rank) : 0].hostname);
}

static ring_status await_barrier(membership *m)
{
    const int mine = ++m->barrier.entered;
    advance(m);
    const double limit = m->world.deadline + PATIENCE;
    while (m->barrier.passed < mine && !group_is_decided(&m->all))
        if (!control_wait(&m->changed, limit))
            return m->barrier.passed >= mine ? RING_OK : too_late(m);
    return m->barrier.passed >= mine ? RING_OK : verdict_status(m);
}

ring_status control_agree(control_world *world, ring_status mine)
{
    membership *m = group_of(world)->member;
    if (world->size == 1)
        return mine;
    if (mine != RING_OK)
        control_announce(world, mine);
    control_lock();
    const ring_status status = group_is_decided(&m->all) ? verdict_status(m) : await_barrier(m);
    control_unlock();
    return status;
}
