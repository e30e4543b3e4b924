/* SPDX-License-Identifier: Apache-2.0
 * Goodbyes, the list of who has left, and new ways up. */
#include "departure.h"

#include "verdict.h"

#include <string.h>

#define FLUSH_SECONDS 0.5      /* to get the last words out                               */
#define LINGER_SECONDS 0.1     /* for peers to close first                                */
#define LATECOMER_SECONDS 1.0  /* for ranks that still come to a start that has failed    */
#define ATTACH_SECONDS 0.05    /* a rank that leaves with all others needs no new way up   */

static bool has_left(const membership *m, int rank)
{
    return atomic_load_explicit(&m->left[rank], memory_order_relaxed);
}

bool control_left(const control_world *world, int peer)
{
    return atomic_load_explicit(&membership_at(world)->left[peer], memory_order_acquire);
}

static void note_left(membership *m, int rank)
{
    if (rank != m->world.rank && !atomic_exchange(&m->left[rank], true))
        m->leavers[m->leaver_count++] = rank;
}

/* ---- On the channel ---------------------------------------------------------------- */

void departure_hear(membership *m, connection *c, const control_message *message)
{
    if (message->kind == CONTROL_LEFT) {
        for (int i = 0; i < message->count; i++)
            note_left(m, message->body.ranks[i]);
    } else {
        note_left(m, c->peer);
        c->left = true;
        connection_shut(c);
    }
    membership_flush(m);
}

static bool speak_of_leavers(const membership *m, connection *c, control_message *out)
{
    const int news = m->leaver_count - c->told_leavers;
    if (news == 0 || membership_is_decided(m))
        return false;
    control_message_begin(out, CONTROL_LEFT, m->world.rank);
    out->count = news < CONTROL_LEFT_MOST ? news : CONTROL_LEFT_MOST;
    memcpy(out->body.ranks, m->leavers + c->told_leavers, (size_t)out->count * sizeof(int32_t));
    c->told_leavers += out->count;
    return true;
}

bool departure_speak(membership *m, connection *c, control_message *out)
{
    if (!c->edge)
        return false;
    if (speak_of_leavers(m, c, out))
        return true;
    if (m->state != STATE_LEAVING || !m->started || c->told_goodbye)
        return false;
    control_message_begin(out, CONTROL_GOODBYE, m->world.rank);
    c->told_goodbye = true;
    return true;
}

/* ---- A new way up ------------------------------------------------------------------ */

static void on_dialed(dialer *d, ring_status status, int fd)
{
    membership *m = d->context;
    if (status == RING_OK) {
        memset(m->unreachable, 0, (size_t)m->world.size * sizeof *m->unreachable);
        m->unanswered = -1;
        connection *c = connection_new(m, fd, d->peer, true);
        if (c != NULL)
            connection_write(c);
    } else {
        log_debug("rank %d cannot be reached: %s", d->peer, fail_text());
        m->unreachable[d->peer] = true;
        m->unanswered = status == RING_ERR_TIMEOUT ? d->peer : m->unanswered;
        m->attach_at = 0;
        membership_due(m, 0);
    }
}

bool departure_is_dialing(const membership *m, int peer)
{
    for (const dialer *d = m->dialers; d != NULL; d = d->next)
        if (!d->ended && d->purpose.kind == HANDSHAKE_CONTROL && (peer < 0 || d->peer == peer))
            return true;
    return false;
}

void departure_dial(membership *m, int peer)
{
    if (peer < 0 || peer >= m->world.size || peer == m->world.rank || has_left(m, peer) ||
        membership_edge_to(m, peer) != NULL || departure_is_dialing(m, peer))
        return;
    const dialer once = {.purpose.kind = HANDSHAKE_CONTROL, .deadline = CONTROL_NEVER,
                         .patience = m->world.settings.peer_timeout, .done = on_dialed};
    if (membership_dial_rank(m, peer, membership_is_local(m, peer), &once) != RING_OK)
        log_debug("%s", fail_text());
}

static bool may_lead_up(const membership *m, int rank)
{
    return !has_left(m, rank) && !m->unreachable[rank];
}

/* @return -1: this rank is the top. */
static int next_way_up(const membership *m)
{
    for (int above = tree_parent(m->world.rank); above >= 0; above = tree_parent(above))
        if (may_lead_up(m, above))
            return above;
    for (int lower = 0; lower < m->world.rank; lower++)
        if (may_lead_up(m, lower))
            return lower;
    return -1;
}

static bool needs_way_up(const membership *m)
{
    return m->state == STATE_RUNNING && !membership_is_decided(m) && membership_up(m) == NULL &&
           !departure_is_dialing(m, -1);
}

static void attach(membership *m)
{
    const int above = next_way_up(m);
    m->attach_at = CONTROL_NEVER;
    if (above >= 0)
        departure_dial(m, above);
    else if (m->unanswered >= 0)
        verdict_lost(m, m->unanswered, "it did not answer when the rank between had left");
}

void departure_gone(membership *m, const connection *c)
{
    if (!c->edge || c->peer > m->world.rank)
        return;
    m->attach_at = clock_now() + ATTACH_SECONDS;
    membership_due(m, m->attach_at);
}

/* ---- Leaving ----------------------------------------------------------------------- */

/* Rank 0 of a start that failed waits a moment for ranks that have not come yet: they would
 * dial in vain until their deadline. Not when it was itself that long. */
static bool awaits_latecomers(const membership *m)
{
    return m->rendezvous.source.fd >= 0 && membership_is_decided(m) &&
           control_verdict(&m->world) != RING_ERR_TIMEOUT && m->told < m->world.size - 1;
}

static bool has_more_to_say(const connection *c)
{
    return connection_is_open(c) && !c->deaf;
}

static bool all_is_said(const membership *m)
{
    for (const connection *c = m->connections; c != NULL; c = c->next)
        if (has_more_to_say(c))
            return false;
    return verdict_is_spread(m) && !awaits_latecomers(m);
}

static bool all_have_closed(const membership *m)
{
    for (const connection *c = m->connections; c != NULL; c = c->next)
        if (connection_is_open(c))
            return false;
    return verdict_is_spread(m) && !awaits_latecomers(m);
}

/* Half-closes what has nothing more to say, so that the peers read to the end. */
static void shut_silent_ones(membership *m)
{
    for (connection *c = m->connections; c != NULL; c = c->next) {
        connection_write(c);
        const bool must_wait = !c->edge && m->world.rank == 0 && awaits_latecomers(m);
        if (!connection_is_busy(c) && !must_wait)
            connection_shut(c);
    }
}

static void tick_leaving(membership *m, double now)
{
    shut_silent_ones(m);
    if (all_is_said(m) && m->stop_by > now + LINGER_SECONDS)
        m->stop_by = now + LINGER_SECONDS;
    membership_due(m, now < m->stop_by ? m->stop_by : CONTROL_NEVER);
    pthread_cond_broadcast(&m->changed);
}

void departure_tick(membership *m, double now)
{
    if (m->state == STATE_LEAVING) {
        tick_leaving(m, now);
    } else if (needs_way_up(m) && m->attach_at < CONTROL_NEVER) {
        if (now >= m->attach_at)
            attach(m);
        else
            membership_due(m, m->attach_at);
    }
}

void control_leave(control_world *world)
{
    membership *m = membership_of(world);
    if (!m->served)
        return;
    control_lock();
    m->state = STATE_LEAVING;
    m->stop_by = clock_now() + (awaits_latecomers(m) ? LATECOMER_SECONDS : FLUSH_SECONDS);
    acceptor_close(&m->tcp);
    acceptor_close(&m->local);
    membership_drop_dialers(m, HANDSHAKE_JOIN);
    membership_drop_dialers(m, HANDSHAKE_LINK);
    if (!membership_is_decided(m))
        membership_drop_dialers(m, HANDSHAKE_CONTROL); /* else they spread the verdict */
    tick_leaving(m, clock_now()); /* the goodbyes go out before anything else can happen */
    while (!all_have_closed(m) && clock_now() < m->stop_by)
        (void)control_wait(&m->changed, m->stop_by);
    membership_close(m);
    m->served = false;
    control_unlock();
    control_exit(&m->client);
}
