/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the connection that leads up, and starts and drops dialers. A dialer that has ended is only
 * marked, and is freed at the end of the event, because callers may still walk the list. A dialer
 * of a neighbour does not retry.
 */
#include "peers.h"

#include <stdlib.h>

/* @return the open connection to the lowest-numbered rank below this rank's number that is not
 * lost; NULL if there is none. @param stays  leaves out ranks that have said goodbye. */
static connection *lowest(const membership *m, bool stays)
{
    connection *up = NULL;
    for (connection *c = m->connections; c != NULL; c = c->next)
        if (connection_is_open(c) && !(c->left && stays) && !c->announced_seated &&
            c->peer < m->world.rank && m->ranks[c->peer].lost == LOSS_NONE &&
            (up == NULL || c->peer < up->peer))
            up = c;
    return up;
}

connection *peers_up(const membership *m)
{
    return lowest(m, false);
}

bool peers_has_way_up(const membership *m)
{
    return lowest(m, true) != NULL;
}

void peers_flush(membership *m)
{
    for (connection *c = m->connections; c != NULL; c = c->next)
        connection_write(c);
    pthread_cond_broadcast(&m->changed);
}

/* ---- Dialers ----------------------------------------------------------------------- */

ring_status peers_start_dialer(membership *m, const dialer *like)
{
    dialer *d = malloc(sizeof *d);
    if (d == NULL)
        return fail(RING_ERR_MEMORY, "no memory to dial another process");
    *d = *like;
    d->source = (control_source){.fd = -1, .client = &m->client};
    d->context = m;
    d->next = m->dialers;
    m->dialers = d;
    dialer_go(d);
    return RING_OK;
}

ring_status peers_start_dialer_to(membership *m, int peer, bool local, const dialer *like)
{
    const control_card *card = &m->world.cards[peer];
    dialer d = *like;
    d.terms = m->terms;
    d.peer = peer;
    d.local = local;
    d.to = address_unix(card->unix_name);
    if (!local && !address_unpack(card->address, &d.to))
        return fail(RING_ERR_INTERNAL, "the card of rank %d has no address", peer);
    return peers_start_dialer(m, &d);
}

void peers_id_ended(const dialer *d, char text[CONTROL_TEXT])
{
    char place[ADDRESS_TEXT_MAX];
    text_format(text, CONTROL_TEXT,
                "the unique id is no longer served at %s (%s): the process that made it has ended, "
                "the id has expired (RING_INIT_TIMEOUT), or its start is over",
                address_text(&d->to, place), d->text);
}

void peers_drop_dialers(membership *m, int kind)
{
    for (dialer *d = m->dialers; d != NULL; d = d->next)
        if (!d->ended && (kind == 0 || d->purpose.kind == kind))
            dialer_drop(d);
}

void peers_tick(membership *m, double now)
{
    for (dialer *d = m->dialers; d != NULL; d = d->next) {
        if (!d->ended && now >= dialer_due(d))
            dialer_go(d);
        else if (!d->ended)
            membership_due(m, dialer_due(d));
    }
}

/* ---- Dialing neighbours ------------------------------------------------------------ */

bool peers_are_dialed(const membership *m, int first, int last)
{
    for (const dialer *d = m->dialers; d != NULL; d = d->next)
        if (!d->ended && d->purpose.kind == HANDSHAKE_CONTROL && d->peer >= first &&
            d->peer <= last)
            return true;
    return false;
}

void peers_dial_neighbour_by(membership *m, int peer, void (*done)(dialer *d, ring_status, int fd))
{
    if (peer == m->world.rank || peers_are_dialed(m, peer, peer))
        return;
    for (const connection *c = m->connections; c != NULL; c = c->next)
        if (connection_is_open(c) && c->edge && c->peer == peer)
            return; /* it is a neighbour already */
    const dialer once = {.purpose.kind = HANDSHAKE_CONTROL,
                         .deadline = CONTROL_NEVER,
                         .patience = m->world.settings.peer_timeout,
                         .done = done};
    if (peers_start_dialer_to(m, peer, membership_is_local(m, peer), &once) != RING_OK)
        log_debug("%s", fail_text());
}

void peers_welcome(dialer *d, int fd)
{
    membership *m = d->context;
    for (int r = 0; r < m->world.size; r++)
        m->ranks[r].unreachable = false;
    m->ways.unanswered = -1;
    connection *c = connection_new(m, fd, &d->handshake, true);
    if (c != NULL)
        connection_write(c);
}

static void on_dialed(dialer *d, ring_status status, int fd)
{
    membership *m = d->context;
    if (status == RING_OK) {
        peers_welcome(d, fd);
        return;
    }
    log_debug("rank %d cannot be reached: %s", d->peer, fail_text());
    m->ranks[d->peer].unreachable = true;
    m->ways.unanswered = status == RING_ERR_TIMEOUT ? d->peer : m->ways.unanswered;
    m->ways.attach_at = 0;
    membership_due(m, 0);
}

void peers_dial_neighbour(membership *m, int peer)
{
    if (peer >= 0 && peer < m->world.size && membership_has(m, peer))
        peers_dial_neighbour_by(m, peer, on_dialed);
}
