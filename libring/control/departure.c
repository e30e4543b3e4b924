/* SPDX-License-Identifier: Apache-2.0
 *
 * Composes and handles goodbyes, and implements control_leave(), which closes the connections after
 * the last communicator. A leaving rank closes the sending direction of its connections when no
 * neighbour needs it any more as a way up (losses.h). The peers then read all messages, and close
 * the connections.
 */
#include "departure.h"

#include "bulletin.h"
#include "data_sockets.h"
#include "gathering.h"
#include "losses.h"
#include "membership.h"
#include "peers.h"
#include "roll.h"
#include "shrink.h"

#include <string.h>

/* s: the longest time that leaving takes: peers read the last messages and then close their
 * connections, and late ranks connect to rank 0 of a failed start. */
#define LEAVING_SECONDS 1.0

/* ---- Messages ----------------------------------------------------------------------- */

void departure_receive(membership *m, connection *c, const control_message *message)
{
    if (message->kind == CONTROL_LEFT) {
        for (int i = 0; i < message->count; i++)
            losses_left(m, message->body.ranks[i]);
    } else if (message->kind == CONTROL_MOVED) {
        c->moved = true;
    } else {
        losses_left(m, c->peer);
        c->left = true;
        losses_on_close(m, c);
    }
    membership_due(m, 0); /* votes are not awaited from ranks that have left */
    losses_adopt_later(m);
    peers_flush(m);
}

/* Composes a list of ranks that have left. @return false if all of them were sent over @p c. */
static bool compose_left(const membership *m, connection *c, control_message *out)
{
    const int news = m->goodbyes.count - c->announced_leavers;
    if (news == 0 || membership_has_failed(m))
        return false;
    control_message_begin(out, CONTROL_LEFT, m->world.rank);
    out->count = news < CONTROL_LEFT_MOST ? news : CONTROL_LEFT_MOST;
    memcpy(out->body.ranks, m->goodbyes.leavers + c->announced_leavers,
           (size_t)out->count * sizeof(int32_t));
    c->announced_leavers += out->count;
    return true;
}

bool departure_compose(membership *m, connection *c, control_message *out)
{
    if (!c->edge)
        return false;
    if (compose_left(m, c, out))
        return true;
    /* A leaving rank that was this rank's way up waits for this message. Until it arrives, the
     * leaving rank watches this rank, and would announce its loss or goodbye to the others. */
    if (c->left && c->peer < m->world.rank && !c->announced_moved && losses_has_way_up(m)) {
        control_message_begin(out, CONTROL_MOVED, m->world.rank);
        c->announced_moved = true;
        return true;
    }
    if (m->state != STATE_LEAVING || !m->started || c->announced_goodbye)
        return false;
    control_message_begin(out, CONTROL_GOODBYE, m->world.rank);
    c->announced_goodbye = true;
    return true;
}

/* ---- Leaving ----------------------------------------------------------------------- */

/* @return true if rank 0 of a failed start must wait for ranks that have not connected yet, since
 * they would dial until their deadline. If the start has timed out, rank 0 does not wait again; if
 * it was aborted, it ends at once. */
static bool awaits_latecomers(const membership *m)
{
    int done = m->start.notified;
    if (m->rendezvous.source.fd < 0 || !membership_has_failed(m) ||
        control_verdict(&m->world) == RING_ERR_TIMEOUT ||
        control_verdict(&m->world) == RING_ERR_ABORTED)
        return false;
    for (int r = 0; r < m->world.size; r++)
        done += m->ranks[r].lost != LOSS_NONE;
    return done < m->world.size - 1;
}

/* @return true if all peers, except lost ones, have closed their connections, too, and all notes
 * are delivered. */
static bool is_complete(const membership *m)
{
    for (const connection *c = m->connections; c != NULL; c = c->next)
        if (connection_is_open(c) && m->ranks[c->peer].lost == LOSS_NONE)
            return false;
    return bulletin_is_spread(m) && !awaits_latecomers(m);
}

/* @return true while a neighbour with a higher number may need this rank as its way up: it has not
 * moved to another way up, left, or been lost. */
static bool is_needed(const membership *m)
{
    for (const connection *c = m->connections; c != NULL && m->started; c = c->next)
        if (c->edge && connection_is_open(c) && c->peer > m->world.rank && !c->left && !c->moved &&
            m->ranks[c->peer].lost == LOSS_NONE)
            return true;
    return false;
}

/* Sends the last messages, and closes the sending direction of connections that have no more to
 * send, so that the peers read all messages and then the end. */
static void tick_leaving(membership *m, double now)
{
    for (connection *c = m->connections; c != NULL; c = c->next) {
        connection_write(c);
        /* A joining rank whose card has not arrived does not read the verdict yet. */
        const bool must_wait = !c->edge && m->world.rank == 0 &&
                               (awaits_latecomers(m) || !c->has_card);
        if (!connection_is_busy(c) && !must_wait && !is_needed(m))
            connection_shut(c);
    }
    membership_due(m, now < m->goodbyes.stop_by ? m->goodbyes.stop_by : CONTROL_NEVER);
    pthread_cond_broadcast(&m->changed);
}

void departure_tick(membership *m, double now)
{
    if (m->state == STATE_LEAVING)
        tick_leaving(m, now);
}

/* ---- For callers ------------------------------------------------------------------- */

/* Says goodbye, if control_start() was called, unless that was done before. */
static void say_goodbye(membership *m)
{
    if (m->state == STATE_LEAVING)
        return;
    m->state = STATE_LEAVING;
    m->goodbyes.stop_by = clock_now() + LEAVING_SECONDS;
    acceptor_close(&m->tcp);
    acceptor_close(&m->local);
    peers_drop_dialers(m, HANDSHAKE_JOIN);
    peers_drop_dialers(m, HANDSHAKE_LINK);
    if (m->bulletins[BULLETIN_LASTING].count == 0) /* else these dialers deliver lasting notes */
        peers_drop_dialers(m, HANDSHAKE_CONTROL);
    tick_leaving(m, clock_now()); /* sends the goodbyes before the lock is released */
}

/* Says goodbye and closes the connections. */
static void leave(membership *m)
{
    if (!m->served)
        return;
    control_lock();
    say_goodbye(m);
    while (!is_complete(m) && clock_now() < m->goodbyes.stop_by)
        (void)control_wait(&m->changed, m->goodbyes.stop_by);
    peers_drop_dialers(m, 0);
    gathering_close(m);
    data_sockets_expire(m, CONTROL_NEVER);
    for (connection *c = m->connections; c != NULL; c = c->next)
        control_close(&c->source);
    membership_free_ended(m);
    m->served = false;
    control_unlock();
    control_exit(&m->client);
}

/* Ends the callbacks of @p g, under the lock. @return true if it was the membership's last
 * communicator. */
static bool detach(group *g)
{
    membership *m = g->member;
    group **at = &m->groups;
    while (*at != NULL && *at != g)
        at = &(*at)->next;
    if (*at == NULL)
        return false; /* control_leave() was called before */
    *at = g->next;
    m->left_ids[m->left_groups++ % GROUPS_LEFT_KEPT] = g->world.id;
    g->wake = NULL;
    g->sink = NULL;
    g->on_statement = NULL;
    data_sockets_end(g);
    roll_forget(m, g->world.id);
    if (m->groups != NULL)
        shrink_resign(g);
    return m->groups == NULL;
}

void control_leave(control_world *world)
{
    group *g = group_of(world);
    control_lock();
    const bool last = detach(g);
    control_unlock();
    if (last)
        leave(g->member);
}

bool control_leave_at_exit(control_world *world, double deadline)
{
    group *g = group_of(world);
    if (!control_lock_by(deadline))
        return false;
    if (detach(g) && g->member->served)
        say_goodbye(g->member);
    control_unlock();
    return true;
}

void control_await_goodbye(control_world *world, double deadline)
{
    membership *m = group_of(world)->member;
    if (!control_lock_by(deadline))
        return;
    while (m->state == STATE_LEAVING && m->served && !is_complete(m) && clock_now() < deadline)
        (void)control_wait(&m->changed, deadline);
    control_unlock();
}

void control_free(control_world *world)
{
    if (world == NULL)
        return;
    group *g = group_of(world);
    membership *m = g->member;
    control_leave(world);
    control_lock();
    const bool last = --m->references == 0;
    control_unlock();
    if (g != &m->all)
        group_free(g);
    if (last) {
        leave(m); /* control_leave_at_exit() has not closed the connections */
        membership_free(m);
    }
}
