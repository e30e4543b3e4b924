/* SPDX-License-Identifier: Apache-2.0
 * Neighbours are dialed once, without a second try. */
#include "neighbours.h"

#include "dialing.h"

#include <string.h>

connection *neighbours_up(const membership *m)
{
    connection *up = NULL;
    for (connection *c = m->connections; c != NULL; c = c->next)
        if (connection_is_open(c) && !c->left && !c->announced_seated && c->peer < m->world.rank &&
            m->lost[c->peer] == LOSS_NONE && (up == NULL || c->peer < up->peer))
            up = c;
    return up;
}

void neighbours_flush(membership *m)
{
    for (connection *c = m->connections; c != NULL; c = c->next)
        connection_write(c);
    pthread_cond_broadcast(&m->changed);
}

/* ---- Dialing ----------------------------------------------------------------------- */

static bool has_edge_to(const membership *m, int peer)
{
    for (const connection *c = m->connections; c != NULL; c = c->next)
        if (connection_is_open(c) && c->edge && c->peer == peer)
            return true;
    return false;
}

bool neighbours_are_dialed(const membership *m, int peer)
{
    for (const dialer *d = m->dialers; d != NULL; d = d->next)
        if (!d->ended && d->purpose.kind == HANDSHAKE_CONTROL && (peer < 0 || d->peer == peer))
            return true;
    return false;
}

void neighbours_dial_by(membership *m, int peer, void (*done)(dialer *d, ring_status, int fd))
{
    if (peer == m->world.rank || has_edge_to(m, peer) || neighbours_are_dialed(m, peer))
        return;
    const dialer once = {.purpose.kind = HANDSHAKE_CONTROL,
                         .deadline = CONTROL_NEVER,
                         .patience = m->world.settings.peer_timeout,
                         .done = done};
    if (dialing_start_to(m, peer, membership_is_local(m, peer), &once) != RING_OK)
        log_debug("%s", fail_text());
}

void neighbours_welcome(dialer *d, int fd)
{
    membership *m = d->context;
    memset(m->unreachable, 0, (size_t)m->world.size * sizeof *m->unreachable);
    m->unanswered = -1;
    connection *c = connection_new(m, fd, &d->handshake, true);
    if (c != NULL)
        connection_write(c);
}

static void on_dialed(dialer *d, ring_status status, int fd)
{
    membership *m = d->context;
    if (status == RING_OK) {
        neighbours_welcome(d, fd);
        return;
    }
    log_debug("rank %d cannot be reached: %s", d->peer, fail_text());
    m->unreachable[d->peer] = true;
    m->unanswered = status == RING_ERR_TIMEOUT ? d->peer : m->unanswered;
    m->attach_at = 0;
    membership_due(m, 0);
}

void neighbours_dial(membership *m, int peer)
{
    if (peer >= 0 && peer < m->world.size && membership_has(m, peer))
        neighbours_dial_by(m, peer, on_dialed);
}
