/* SPDX-License-Identifier: Apache-2.0
 * The rule of each kind of message, and the order in which parts speak and tick. */
#include "dispatch.h"

#include "barrier.h"
#include "bulletin.h"
#include "data_sockets.h"
#include "departure.h"
#include "gathering.h"
#include "handout.h"
#include "heartbeat.h"
#include "id_listener.h"
#include "losses.h"
#include "membership.h"
#include "peers.h"
#include "roll.h"
#include "shrink.h"
#include "statement.h"
#include "verdict.h"
#include "visiting.h"

/* ---- Messages ---------------------------------------------------------------------- */

static const control_rule rules[CONTROL_KINDS] = {
    [CONTROL_CARD] = {gathering_hear},
    [CONTROL_SEATED] = {gathering_hear},
    [CONTROL_TERMS] = {handout_hear},
    [CONTROL_CARDS] = {handout_hear},
    [CONTROL_READY] = {barrier_hear},
    [CONTROL_GO] = {barrier_hear},
    [CONTROL_PROPOSAL] = {verdict_hear},
    [CONTROL_VERDICT] = {bulletin_hear, verdict_take, verdict_end},
    [CONTROL_BEAT] = {NULL}, /* connection.c has noted the time */
    [CONTROL_STATEMENT] = {bulletin_hear, NULL, statement_hear},
    [CONTROL_LOST] = {bulletin_hear, losses_hear, verdict_end},
    [CONTROL_VOTE] = {bulletin_hear, NULL, shrink_hear},
    [CONTROL_DECISION] = {bulletin_hear, NULL, shrink_hear},
    [CONTROL_LEFT] = {departure_hear},
    [CONTROL_GOODBYE] = {departure_hear},
    [CONTROL_MOVED] = {departure_hear},
    [CONTROL_PRESENT] = {bulletin_hear, roll_hear},
    [CONTROL_ROLL] = {bulletin_hear, roll_hear, roll_replay},
};

/* Before all cards are here, only the senders of cards may send other messages. */
static bool is_timely(const membership *m, const connection *c, uint32_t kind)
{
    const bool to_rank_0 = kind == CONTROL_CARD || kind == CONTROL_SEATED;
    if (to_rank_0 || !c->edge)
        return (to_rank_0 && !c->edge && m->world.rank == 0) || kind == CONTROL_TERMS ||
               kind == CONTROL_PROPOSAL || kind == CONTROL_VERDICT || kind == CONTROL_BEAT;
    return true;
}

static void hear(membership *m, connection *c, control_message *message)
{
    if (!control_message_check(message, m->world.size) || !is_timely(m, c, message->kind))
        losses_nonsense(m, c);
    else if (rules[message->kind].hear != NULL)
        rules[message->kind].hear(m, c, message);
}

static bool speak(membership *m, connection *c, control_message *out)
{
    if (!visiting_speak(m, c, out) && !bulletin_speak(m, c, out) && !verdict_speak(m, c, out) &&
        !handout_speak(m, c, out) && !barrier_speak(m, c, out) && !departure_speak(m, c, out))
        return heartbeat_speak(m, c, out);
    heartbeat_follow(m, c);
    return true;
}

/* ---- Other events ------------------------------------------------------------------ */

static void lose(membership *m, connection *c)
{
    if (membership_has_failed(m) || c->tacit ||
        (m->state == STATE_LEAVING && (c->deaf || !c->edge || !m->started)))
        return;
    if (c->edge && (c->left || c->moved))
        losses_gone(m, c);
    else if (c->edge)
        losses_see(m, c->peer, LOSS_ENDED, "its process ended or its connection broke");
    else if (m->world.rank == 0)
        gathering_lose(m, c);
    else
        visiting_lose(m, c);
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
    visiting_tick(m);
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
                                         .hear = hear,
                                         .distrust = losses_distrust,
                                         .speak = speak,
                                         .lose = lose,
                                         .settle = settle,
                                         .tick = tick};
