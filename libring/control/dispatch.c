/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the rule for each kind of message, and the order in which the parts compose messages and
 * handle timers. This is the only file of the room that includes the headers of all parts.
 */
#include "dispatch.h"

#include "barrier.h"
#include "bulletin.h"
#include "data_sockets.h"
#include "departure.h"
#include "gathering.h"
#include "handout.h"
#include "heartbeat.h"
#include "id_listener.h"
#include "joining.h"
#include "losses.h"
#include "membership.h"
#include "peers.h"
#include "roll.h"
#include "shrink.h"
#include "statement.h"
#include "verdict.h"

/* ---- Messages ---------------------------------------------------------------------- */

static const control_rule rules[CONTROL_KINDS] = {
    [CONTROL_CARD] = {gathering_receive},
    [CONTROL_SEATED] = {gathering_receive},
    [CONTROL_TERMS] = {handout_receive},
    [CONTROL_CARDS] = {handout_receive},
    [CONTROL_READY] = {barrier_receive},
    [CONTROL_GO] = {barrier_receive},
    [CONTROL_PROPOSAL] = {verdict_receive},
    [CONTROL_VERDICT] = {bulletin_receive, verdict_on_note, verdict_end_group},
    [CONTROL_BEAT] = {NULL}, /* connection.c has stored the time of its arrival */
    [CONTROL_STATEMENT] = {bulletin_receive, NULL, statement_on_note},
    [CONTROL_LOST] = {bulletin_receive, losses_on_note, verdict_end_group},
    [CONTROL_VOTE] = {bulletin_receive, NULL, shrink_on_note},
    [CONTROL_DECISION] = {bulletin_receive, NULL, shrink_on_note},
    [CONTROL_LEFT] = {departure_receive},
    [CONTROL_GOODBYE] = {departure_receive},
    [CONTROL_MOVED] = {departure_receive},
    [CONTROL_PRESENT] = {bulletin_receive, roll_on_note},
    [CONTROL_ROLL] = {bulletin_receive, roll_on_note, roll_replay},
};

/* @return true if a message of this kind may arrive over @p c. Joining ranks send their cards to
 * rank 0 over connections that are not edges of the tree. Over such a connection only the kinds of
 * messages that joining needs may arrive. */
static bool is_timely(const membership *m, const connection *c, uint32_t kind)
{
    const bool to_rank_0 = kind == CONTROL_CARD || kind == CONTROL_SEATED;
    if (to_rank_0 || !c->edge)
        return (to_rank_0 && !c->edge && m->world.rank == 0) || kind == CONTROL_TERMS ||
               kind == CONTROL_PROPOSAL || kind == CONTROL_VERDICT || kind == CONTROL_BEAT;
    return true;
}

static void receive(membership *m, connection *c, control_message *message)
{
    if (!control_message_check(message, m->world.size) || !is_timely(m, c, message->kind))
        losses_protocol_error(m, c);
    else if (rules[message->kind].receive != NULL)
        rules[message->kind].receive(m, c, message);
}

/* Asks the parts for the next message, in the order of urgency. */
static bool compose(membership *m, connection *c, control_message *out)
{
    if (!joining_compose(m, c, out) && !bulletin_compose(m, c, out) &&
        !verdict_compose(m, c, out) && !handout_compose(m, c, out) && !barrier_compose(m, c, out) &&
        !departure_compose(m, c, out))
        return heartbeat_compose(m, c, out);
    heartbeat_expedite(m, c);
    return true;
}

/* ---- Other events ------------------------------------------------------------------ */

static void on_close(membership *m, connection *c)
{
    if (membership_has_failed(m) || c->no_message_yet ||
        (m->state == STATE_LEAVING && (c->send_closed || !c->edge || !m->started)))
        return;
    if (c->edge && (c->left || c->moved))
        losses_on_close(m, c);
    else if (c->edge)
        losses_report(m, c->peer, LOSS_ENDED, "its process ended or its connection broke");
    else if (m->world.rank == 0)
        gathering_on_close(m, c);
    else
        joining_on_close(m, c);
}

static void settle(membership *m)
{
    handout_check(m);
    membership_free_ended(m);
    if (m->state == STATE_LEAVING)
        membership_due(m, 0);
    pthread_cond_broadcast(&m->changed);
}

static void tick(control_client *client, double now, double stall)
{
    membership *m = (membership *)((char *)client - offsetof(membership, client));
    heartbeat_forgive(m, now, stall);
    membership_due(m, acceptor_tick(&m->rendezvous, now));
    membership_due(m, acceptor_tick(&m->tcp, now));
    membership_due(m, acceptor_tick(&m->local, now));
    peers_tick(m, now);
    gathering_tick(m, now);
    joining_tick(m);
    barrier_tick(m, now);
    heartbeat_tick(m, now);
    verdict_tick(m, now);
    bulletin_tick(m, now);
    shrink_tick(m, now);
    roll_tick(m, now);
    losses_tick(m, now);
    departure_tick(m, now);
    data_sockets_expire(m, now);
    membership_due(m, id_listener_expire(now));
    membership_free_ended(m);
}

const control_dispatch dispatch_table = {.rules = rules,
                                         .receive = receive,
                                         .distrust = losses_distrust,
                                         .compose = compose,
                                         .on_close = on_close,
                                         .settle = settle,
                                         .tick = tick};
