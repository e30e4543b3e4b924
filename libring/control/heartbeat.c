/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends heartbeats and measures the silence of neighbours. Any received bytes show that a neighbour
 * is alive, and a heartbeat is sent only if there is no other message for it.
 */
#include "heartbeat.h"

#include "losses.h"

#define FOLLOW_SECONDS 0.3 /* the delay of a heartbeat after another message */

/* @return the seconds between two heartbeats. */
static double interval(const membership *m)
{
    const double fifth = m->world.settings.peer_timeout / 5;
    return fifth < 1 ? fifth : 1;
}

bool heartbeat_compose(membership *m, connection *c, control_message *out)
{
    const double now = clock_now();
    if (now < c->beat || c->announced_goodbye || c->gives_cards)
        return false;
    control_message_begin(out, CONTROL_BEAT, m->world.rank);
    c->beat = c->edge ? now + interval(m) : CONTROL_NEVER;
    membership_due(m, c->beat);
    return true;
}

void heartbeat_expedite(membership *m, connection *c)
{
    const double soon = clock_now() + FOLLOW_SECONDS;
    if (c->beat > soon)
        c->beat = soon;
    membership_due(m, c->beat);
}

/* After a stall of this process, a peer counts as silent after one more interval at the earliest.
 */
void heartbeat_forgive(membership *m, double now, double stall)
{
    const double least = now - m->world.settings.peer_timeout + interval(m);
    if (stall <= interval(m))
        return;
    m->ways.lost_at = now; /* others may have reported this rank as lost, and closed rounds */
    for (connection *c = m->connections; c != NULL; c = c->next) {
        c->heard += stall;
        if (c->heard < least)
            c->heard = least;
        if (c->heard > now)
            c->heard = now;
    }
}

/* Reports the peer as lost if nothing has arrived from it for too long. */
static void check_silence(membership *m, connection *c, double now)
{
    char why[128];
    const double limit = m->world.settings.peer_timeout;
    const bool suspected = now - c->heard > limit;
    if (suspected)
        connection_read(c); /* unread bytes may have arrived in time */
    if (suspected && connection_is_open(c) && clock_now() - c->heard > limit) {
        text_format(why, sizeof why,
                    "no sign of life for %g s (RING_PEER_TIMEOUT); its process is stopped or its "
                    "host is cut off",
                    limit);
        losses_report(m, c->peer, LOSS_SILENT, why);
    } else {
        membership_due(m, c->heard + limit);
    }
}

void heartbeat_tick(membership *m, double now)
{
    for (connection *c = m->connections; c != NULL; c = c->next) {
        if (!connection_is_open(c) || m->state == STATE_LEAVING)
            continue;
        if (c->edge && !membership_has_failed(m) && !c->left && m->ranks[c->peer].lost == LOSS_NONE)
            check_silence(m, c, now);
        connection_write(c);
        if (connection_is_open(c) && !c->send_closed && c->beat > now)
            membership_due(m, c->beat);
    }
}
