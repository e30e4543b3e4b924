/* SPDX-License-Identifier: Apache-2.0
 * Goodbyes, losses, the list of ranks that have left, and new ways up. */
#include "departure.h"

#include "bulletin.h"
#include "data_sockets.h"
#include "dialing.h"
#include "neighbours.h"
#include "verdict.h"

#include <string.h>

#define FLUSH_SECONDS 0.5     /* to send the last messages */
#define LINGER_SECONDS 0.1    /* for peers to close first */
#define LATECOMER_SECONDS 1.0 /* for ranks that still come to a start that has failed */
#define ATTACH_SECONDS 0.05   /* a rank that leaves with all others needs no new way up */
#define ADOPT_SECONDS 0.3     /* for a rank to come whose way up is this one now */

static void note_left(membership *m, int rank)
{
    if (rank == m->world.rank || atomic_exchange(&m->left[rank], true))
        return;
    m->leavers[m->leaver_count++] = rank;
    data_sockets_left(m, rank);
}

/* ---- On the channel ---------------------------------------------------------------- */

static void adopt_later(membership *m)
{
    m->adopt_at = clock_now() + ADOPT_SECONDS;
    membership_due(m, m->adopt_at);
}

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
    membership_due(m, 0); /* a vote may be complete without them */
    adopt_later(m);
    neighbours_flush(m);
}

static bool speak_of_leavers(const membership *m, connection *c, control_message *out)
{
    const int news = m->leaver_count - c->announced_leavers;
    if (news == 0 || membership_has_failed(m))
        return false;
    control_message_begin(out, CONTROL_LEFT, m->world.rank);
    out->count = news < CONTROL_LEFT_MOST ? news : CONTROL_LEFT_MOST;
    memcpy(out->body.ranks, m->leavers + c->announced_leavers,
           (size_t)out->count * sizeof(int32_t));
    c->announced_leavers += out->count;
    return true;
}

bool departure_speak(membership *m, connection *c, control_message *out)
{
    if (!c->edge)
        return false;
    if (speak_of_leavers(m, c, out))
        return true;
    if (m->state != STATE_LEAVING || !m->started || c->announced_goodbye)
        return false;
    control_message_begin(out, CONTROL_GOODBYE, m->world.rank);
    c->announced_goodbye = true;
    return true;
}

/* ---- A new way up ------------------------------------------------------------------ */

static bool may_lead_up(const membership *m, int from, int to)
{
    return membership_has(m, to) && (from != m->world.rank || !m->unreachable[to]);
}

/* @return the rank to which @p rank should connect, as far as this rank knows; -1: it is the
 * top. */
static int way_up_from(const membership *m, int rank)
{
    for (int above = tree_parent(rank); above >= 0; above = tree_parent(above))
        if (may_lead_up(m, rank, above))
            return above;
    for (int lower = 0; lower < rank; lower++)
        if (may_lead_up(m, rank, lower))
            return lower;
    return -1;
}

static bool is_dialing_up(const membership *m)
{
    for (const dialer *d = m->dialers; d != NULL; d = d->next)
        if (!d->ended && d->purpose.kind == HANDSHAKE_CONTROL && d->peer < m->world.rank)
            return true;
    return false;
}

static bool needs_way_up(const membership *m)
{
    return neighbours_up(m) == NULL && !is_dialing_up(m);
}

static void attach(membership *m)
{
    const int above = way_up_from(m, m->world.rank);
    m->attach_at = CONTROL_NEVER;
    if (above >= 0)
        neighbours_dial(m, above);
    else if (m->unanswered >= 0)
        departure_lost(m, m->unanswered, LOSS_SILENT,
                       "it did not answer when the rank between was gone");
}

static void seek_way_up(membership *m)
{
    m->attach_at = clock_now() + ATTACH_SECONDS;
    membership_due(m, m->attach_at);
}

/* ---- Ranks below a rank that is gone ----------------------------------------------- */

static bool lost_one_above(const membership *m, int rank)
{
    for (int above = tree_parent(rank); above >= 0; above = tree_parent(above))
        if (m->lost[above] != LOSS_NONE)
            return true;
    return false;
}

/* A rank that cannot be reached has ended; or it left when all above it did, without a rank for its
 * goodbye. The second failure decides: the goodbye may be on its way. A silent rank is dialed
 * again. */
static void on_orphan_dialed(dialer *d, ring_status status, int fd)
{
    membership *m = d->context;
    const char *why = "it could not be reached when the rank between was gone";
    const bool again = status == RING_ERR_SYSTEM || !m->unreachable[d->peer];
    if (status == RING_OK) {
        neighbours_welcome(d, fd);
        return;
    }
    if (status == RING_ERR_TIMEOUT)
        departure_lost(m, d->peer, LOSS_SILENT, why);
    else if (again)
        m->unreachable[d->peer] = true;
    else if (lost_one_above(m, d->peer))
        departure_lost(m, d->peer, LOSS_ENDED, why);
    else
        note_left(m, d->peer);
    adopt_later(m);
    neighbours_flush(m);
}

/* Dials the ranks that should have come to this rank and did not: they may have ended with the rank
 * between, unnoticed by others. */
static void adopt(membership *m)
{
    m->adopt_at = CONTROL_NEVER;
    for (int r = m->world.rank + 1; r < m->world.size; r++)
        if (!membership_has_left(m, r) && m->lost[r] != LOSS_ENDED &&
            way_up_from(m, r) == m->world.rank)
            neighbours_dial_by(m, r, on_orphan_dialed);
}

void departure_gone(membership *m, const connection *c)
{
    if (c->edge && c->peer < m->world.rank)
        seek_way_up(m);
}

/* All ranks that see a rank die compose the same note. */
void departure_lost(membership *m, int rank, enum loss how, const char *why)
{
    char name[128], text[CONTROL_TEXT];
    control_message note;
    if (m->lost[rank] >= how || membership_has_left(m, rank))
        return;
    card_name(&m->world.cards[rank], rank, name, sizeof name);
    text_format(text, sizeof text, "%s was lost%s%s", name, m->state == STATE_JOINING ? " " : ": ",
                m->state == STATE_JOINING ? "while ranks were joining" : why);
    if (m->state < STATE_LINKING)
        m->lost[rank] = how; /* ranks that have not joined yet hear the verdict alone */
    if (!m->started)
        verdict_decide(m, RING_ERR_PEER, text);
    if (m->state < STATE_LINKING)
        return;
    control_message_reason(&note, CONTROL_LOST, rank, RING_ERR_PEER, text);
    note.count = (int32_t)how;
    bulletin_post(m, &note);
}

void departure_hear_lost(membership *m, const control_message *note)
{
    const int rank = note->rank;
    if (m->lost[rank] < (enum loss)note->count)
        m->lost[rank] = (enum loss)note->count;
    m->lost_at = clock_now();
    for (dialer *d = m->dialers; d != NULL; d = d->next)
        if (!d->ended && d->purpose.kind == HANDSHAKE_CONTROL && d->peer == rank)
            dialer_drop(d);
    seek_way_up(m);
    adopt_later(m);
}

/* ---- Leaving ----------------------------------------------------------------------- */

static int count_lost(const membership *m)
{
    int count = 0;
    for (int r = 0; r < m->world.size; r++)
        count += m->lost[r] != LOSS_NONE;
    return count;
}

/* Rank 0 of a start that failed waits a moment for ranks that have not come yet: they would dial in
 * vain until their deadline. Not after a time-out, which was that long itself. */
static bool awaits_latecomers(const membership *m)
{
    return m->rendezvous.source.fd >= 0 && membership_has_failed(m) &&
           control_verdict(&m->world) != RING_ERR_TIMEOUT &&
           m->notified + count_lost(m) < m->world.size - 1;
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
    return bulletin_is_spread(m) && !awaits_latecomers(m);
}

static bool all_have_closed(const membership *m)
{
    for (const connection *c = m->connections; c != NULL; c = c->next)
        if (connection_is_open(c))
            return false;
    return bulletin_is_spread(m) && !awaits_latecomers(m);
}

/* Half-closes connections with nothing left to send, so that the peers read to the end. */
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
    if (m->state == STATE_LEAVING)
        tick_leaving(m, now);
    if (m->state != STATE_RUNNING)
        return;
    if (needs_way_up(m) && now >= m->attach_at)
        attach(m);
    if (now >= m->adopt_at)
        adopt(m);
    membership_due(m, needs_way_up(m) ? m->attach_at : CONTROL_NEVER);
    membership_due(m, m->adopt_at);
}

void departure_run(membership *m)
{
    if (!m->served)
        return;
    control_lock();
    m->state = STATE_LEAVING;
    m->stop_by = clock_now() + (awaits_latecomers(m) ? LATECOMER_SECONDS : FLUSH_SECONDS);
    acceptor_close(&m->tcp);
    acceptor_close(&m->local);
    dialing_drop(m, HANDSHAKE_JOIN);
    dialing_drop(m, HANDSHAKE_LINK);
    if (m->bulletins[BULLETIN_LASTING].count == 0) /* else they deliver notes that all must have */
        dialing_drop(m, HANDSHAKE_CONTROL);
    tick_leaving(m, clock_now()); /* the goodbyes go out before anything else can happen */
    while (!all_have_closed(m) && clock_now() < m->stop_by)
        (void)control_wait(&m->changed, m->stop_by);
    membership_close(m);
    m->served = false;
    control_unlock();
    control_exit(&m->client);
}
