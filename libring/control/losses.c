/* SPDX-License-Identifier: Apache-2.0
 *
 * Records losses and the ranks that have left, and dials new ways up. The rank to which a rank must
 * connect follows from the tree and from the ranks that are gone, so all ranks compute the same one
 * without an agreement as soon as they know of the same losses.
 */
#include "losses.h"

#include "bulletin.h"
#include "data_sockets.h"
#include "peers.h"
#include "verdict.h"

#define ATTACH_SECONDS 0.05 /* before dialing a way up: needless when all ranks leave */
#define ADOPT_SECONDS 0.3   /* in which a rank whose way up is now this one must connect */

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

/* Composes a note with the same text on all ranks that notice the loss. */
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
        m->ranks[rank].lost = how; /* ranks that have not joined yet get only the verdict */
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

static bool may_lead_up(const membership *m, int from, int to)
{
    return membership_has(m, to) && (from != m->world.rank || !m->ranks[to].unreachable);
}

/* @return the rank to which @p rank should connect, as far as this rank knows: the nearest
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

static bool needs_way_up(const membership *m)
{
    return !peers_has_way_up(m) && !peers_are_dialed(m, 0, m->world.rank - 1);
}

bool losses_has_way_up(const membership *m)
{
    return peers_has_way_up(m) || (needs_way_up(m) && way_up_from(m, m->world.rank) < 0);
}

static void attach(membership *m)
{
    const int above = way_up_from(m, m->world.rank);
    m->ways.attach_at = CONTROL_NEVER;
    if (above >= 0)
        peers_dial_neighbour(m, above);
    else if (m->ways.unanswered >= 0)
        losses_report(m, m->ways.unanswered, LOSS_SILENT,
                      "it did not answer after the rank between was gone");
}

/* ---- Ranks below a rank that is gone ----------------------------------------------- */

static bool lost_one_above(const membership *m, int rank)
{
    for (int above = tree_parent(rank); above >= 0; above = tree_parent(above))
        if (m->ranks[above].lost != LOSS_NONE)
            return true;
    return false;
}

/* A rank that cannot be reached has ended; or it left after all ranks above it had left, so that it
 * had no rank to say goodbye to. After the first failed dial its goodbye may still be on the way,
 * so only the second one decides. A rank that does not answer in time is silent. */
static void on_orphan_dialed(dialer *d, ring_status status, int fd)
{
    membership *m = d->context;
    const char *why = "it could not be reached after the rank between was gone";
    const bool again = status == RING_ERR_SYSTEM || !m->ranks[d->peer].unreachable;
    if (status == RING_OK) {
        peers_welcome(d, fd);
        return;
    }
    if (status == RING_ERR_TIMEOUT)
        losses_report(m, d->peer, LOSS_SILENT, why);
    else if (again)
        m->ranks[d->peer].unreachable = true;
    else if (lost_one_above(m, d->peer))
        losses_report(m, d->peer, LOSS_ENDED, why);
    else
        losses_left(m, d->peer);
    losses_adopt_later(m);
    peers_flush(m);
}

/* @return true if this rank must dial @p rank: a rank below, whose way up is this one, has not
 * connected; or a rank above did not answer, and left this rank at the top. */
static bool is_orphan(const membership *m, int rank)
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
            if (is_orphan(m, r)) /* it may have ended with the rank between, unnoticed by others */
                peers_dial_neighbour_by(m, r, on_orphan_dialed);
    }
    membership_due(m, needs_way_up(m) ? m->ways.attach_at : CONTROL_NEVER);
    membership_due(m, m->ways.adopt_at);
}
