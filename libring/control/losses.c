/* SPDX-License-Identifier: Apache-2.0
 *
 * Records the ranks that were lost or have left, and dials new ways up. A rank's way up is computed
 * from the tree and the ranks that are gone. So as soon as all ranks have been notified of the same
 * losses, they compute the same ways up, without further messages.
 */
#include "losses.h"

#include "bulletin.h"
#include "data_sockets.h"
#include "peers.h"
#include "verdict.h"

/* s: the delay before a new way up is dialed, which is unnecessary if all ranks are leaving. */
#define ATTACH_SECONDS 0.05
/* s: the time in which ranks whose new way up is this rank must connect to it. */
#define ADOPT_SECONDS 0.3

void losses_left(membership *m, int rank)
{
    if (rank == m->world.rank || atomic_exchange(&m->ranks[rank].left, true))
        return;
    m->goodbyes.leavers[m->goodbyes.count++] = rank;
    data_sockets_left(m, rank);
}

/* ---- Losses ------------------------------------------------------------------------ */

void losses_adopt_later(membership *m)
{
    m->ways.adopt_at = clock_now() + ADOPT_SECONDS;
    membership_due(m, m->ways.adopt_at);
}

static void seek_way_up(membership *m)
{
    m->ways.attach_at = clock_now() + ATTACH_SECONDS;
    membership_due(m, m->ways.attach_at);
}

/* Several neighbours may report one loss, so the text does not depend on the reporting rank. */
void losses_report(membership *m, int rank, enum loss how, const char *why)
{
    char name[128], text[CONTROL_TEXT];
    control_message note;
    if (m->ranks[rank].lost >= how || membership_has_left(m, rank))
        return;
    card_name(&m->world.cards[rank], rank, name, sizeof name);
    text_format(text, sizeof text, "%s was lost%s%s", name, m->state == STATE_JOINING ? " " : ": ",
                m->state == STATE_JOINING ? "while ranks were joining" : why);
    if (m->state < STATE_LINKING)
        m->ranks[rank].lost = how; /* joining ranks get the verdict of the start, but no notes */
    if (!m->started)
        verdict_decide(m, RING_ERR_PEER, text);
    if (m->state < STATE_LINKING)
        return;
    control_message_reason(&note, CONTROL_LOST, rank, RING_ERR_PEER, text);
    note.count = (int32_t)how;
    bulletin_post(m, &note);
}

void losses_on_note(membership *m, const control_message *note)
{
    const int rank = note->rank;
    if (m->ranks[rank].lost < (enum loss)note->count)
        m->ranks[rank].lost = (enum loss)note->count;
    m->ways.lost_at = clock_now();
    for (dialer *d = m->dialers; d != NULL; d = d->next)
        if (!d->ended && d->purpose.kind == HANDSHAKE_CONTROL && d->peer == rank)
            dialer_drop(d);
    seek_way_up(m);
    losses_adopt_later(m);
}

void losses_distrust(membership *m, const connection *c, ring_status status, const char *what)
{
    char name[128], text[CONTROL_TEXT];
    card_name(&m->world.cards[c->peer], c->peer, name, sizeof name);
    text_format(text, sizeof text, "%s %s", m->started ? "it" : name, what);
    if (m->started)
        losses_report(m, c->peer, LOSS_SILENT, text);
    else
        verdict_decide(m, status, text);
}

void losses_protocol_error(membership *m, const connection *c)
{
    losses_distrust(m, c, RING_ERR_INTERNAL, "sent an invalid control message");
}

/* ---- A new way up ------------------------------------------------------------------ */

/* @return true if @p to can be the way up of @p from. */
static bool may_lead_up(const membership *m, int from, int to)
{
    return membership_has(m, to) && (from != m->world.rank || !m->ranks[to].unreachable);
}

/* @return the way up of @p rank, by the losses of which this rank was notified: the nearest
 * remaining ancestor in the tree, else the lowest remaining rank; -1 if @p rank is the top. */
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

/* @return true if this rank neither has a way up nor is dialing one. */
static bool needs_way_up(const membership *m)
{
    return !peers_has_way_up(m) && !peers_are_dialed(m, 0, m->world.rank - 1);
}

bool losses_has_way_up(const membership *m)
{
    return peers_has_way_up(m) || (needs_way_up(m) && way_up_from(m, m->world.rank) < 0);
}

/* Dials a new way up. If no rank can be one, this rank is the top, and reports the rank that did
 * not answer in time as lost. */
static void attach(membership *m)
{
    const int above = way_up_from(m, m->world.rank);
    m->ways.attach_at = CONTROL_NEVER;
    if (above >= 0)
        peers_dial_neighbour(m, above);
    else if (m->ways.unanswered >= 0)
        losses_report(m, m->ways.unanswered, LOSS_SILENT,
                      "it did not answer when another rank tried to reconnect to it");
}

/* ---- Ranks whose way up is this rank ------------------------------------------------- */

/* @return true if an ancestor of @p rank in the tree was lost. */
static bool lost_ancestor(const membership *m, int rank)
{
    for (int above = tree_parent(rank); above >= 0; above = tree_parent(above))
        if (m->ranks[above].lost != LOSS_NONE)
            return true;
    return false;
}

/* Handles the dial of a rank that had not connected. If its listener is closed, the rank has ended,
 * or it has left without a neighbour that could receive its goodbye, because its ancestors had left
 * before. Its goodbye may also be in flight, so the first failed dial is followed by a second one.
 * A rank that does not answer in time counts as silent. */
static void on_adopted(dialer *d, ring_status status, int fd)
{
    membership *m = d->context;
    const char *why = "it did not accept a connection when another rank tried to reconnect to it";
    const bool again = status == RING_ERR_SYSTEM || !m->ranks[d->peer].unreachable;
    if (status == RING_OK) {
        peers_welcome(d, fd);
        return;
    }
    if (status == RING_ERR_TIMEOUT)
        losses_report(m, d->peer, LOSS_SILENT, why);
    else if (again)
        m->ranks[d->peer].unreachable = true;
    else if (lost_ancestor(m, d->peer))
        losses_report(m, d->peer, LOSS_ENDED, why);
    else
        losses_left(m, d->peer);
    losses_adopt_later(m);
    peers_flush(m);
}

/* @return true if this rank must dial @p rank (which has no effect if they are connected). It is a
 * rank with a higher number, whose way up is this rank; or a rank with a lower number that this
 * rank could not reach, so that this rank is now the top. */
static bool must_dial(const membership *m, int rank)
{
    if (membership_has_left(m, rank) || m->ranks[rank].lost == LOSS_ENDED)
        return false;
    return rank > m->world.rank ? way_up_from(m, rank) == m->world.rank
                                : m->ranks[rank].unreachable && way_up_from(m, m->world.rank) < 0;
}

void losses_on_close(membership *m, const connection *c)
{
    if (c->edge && c->peer < m->world.rank)
        seek_way_up(m);
}

void losses_tick(membership *m, double now)
{
    if (m->state != STATE_RUNNING)
        return;
    if (needs_way_up(m) && now >= m->ways.attach_at)
        attach(m);
    if (now >= m->ways.adopt_at) {
        m->ways.adopt_at = CONTROL_NEVER;
        for (int r = 0; r < m->world.size; r++)
            if (must_dial(m, r))
                peers_dial_neighbour_by(m, r, on_adopted);
    }
    membership_due(m, needs_way_up(m) ? m->ways.attach_at : CONTROL_NEVER);
    membership_due(m, m->ways.adopt_at);
}
