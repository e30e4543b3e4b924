/* SPDX-License-Identifier: Apache-2.0
 * Making and freeing a membership, and the dispatch of messages. */
#include "membership.h"

#include "barrier.h"
#include "bulletin.h"
#include "data_sockets.h"
#include "departure.h"
#include "dialing.h"
#include "gathering.h"
#include "handout.h"
#include "heartbeat.h"
#include "id_listener.h"
#include "losses.h"
#include "roll.h"
#include "shrink.h"
#include "verdict.h"
#include "visiting.h"

#include <sodium.h>
#include <stdlib.h>

/* ---- The channel ------------------------------------------------------------------- */

/* Before all cards are here, only the senders of cards may send other messages. */
static bool is_timely(const membership *m, const connection *c, uint32_t kind)
{
    const bool to_rank_0 = kind == CONTROL_CARD || kind == CONTROL_SEATED;
    if (to_rank_0 || !c->edge)
        return (to_rank_0 && !c->edge && m->world.rank == 0) || kind == CONTROL_TERMS ||
               kind == CONTROL_PROPOSAL || kind == CONTROL_VERDICT || kind == CONTROL_BEAT;
    return true;
}

void membership_hear(membership *m, connection *c, control_message *message)
{
    if (!control_message_check(message, m->world.size) || !is_timely(m, c, message->kind)) {
        losses_nonsense(m, c);
        return;
    }
    switch (message->kind) {
    case CONTROL_CARD:
    case CONTROL_SEATED:
        gathering_hear(m, c, message);
        return;
    case CONTROL_TERMS:
    case CONTROL_CARDS:
        handout_hear(m, c, message);
        return;
    case CONTROL_READY:
    case CONTROL_GO:
        barrier_hear(m, c, message);
        return;
    case CONTROL_PROPOSAL:
        c->came |= !c->edge; /* instead of its card */
        verdict_consider(m, message);
        return;
    case CONTROL_VERDICT:
    case CONTROL_STATEMENT:
    case CONTROL_LOST:
    case CONTROL_VOTE:
    case CONTROL_DECISION:
    case CONTROL_PRESENT:
    case CONTROL_ROLL:
        bulletin_hear(m, c, message);
        return;
    case CONTROL_LEFT:
    case CONTROL_GOODBYE:
        departure_hear(m, c, message);
        return;
    default:
        return; /* a beat: connection.c has noted the time */
    }
}

bool membership_speak(membership *m, connection *c, control_message *out)
{
    return visiting_speak(m, c, out) || bulletin_speak(m, c, out) || verdict_speak(m, c, out) ||
           handout_speak(m, c, out) || barrier_speak(m, c, out) || departure_speak(m, c, out) ||
           heartbeat_speak(m, c, out);
}

void membership_lose(membership *m, connection *c)
{
    if (m->state == STATE_LEAVING || membership_has_failed(m) || c->tacit)
        return;
    if (c->edge && c->left)
        losses_gone(m, c);
    else if (c->edge)
        losses_see(m, c->peer, LOSS_ENDED, "its process ended or its connection broke");
    else if (m->world.rank == 0)
        gathering_lose(m, c);
    else
        visiting_lose(m, c);
}

/* ---- Ticks ------------------------------------------------------------------------- */

static void free_ended(membership *m)
{
    for (connection **at = &m->connections; *at != NULL;) {
        connection *c = *at;
        if (connection_is_open(c)) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        connection_free(c);
    }
    for (dialer **at = &m->dialers; *at != NULL;) {
        dialer *d = *at;
        if (!d->ended) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        free(d);
    }
}

void membership_after_event(membership *m)
{
    handout_check(m);
    free_ended(m);
    if (m->state == STATE_LEAVING)
        membership_due(m, 0);
    pthread_cond_broadcast(&m->changed);
}

static void tick_acceptors(membership *m, double now)
{
    acceptor *const acceptors[] = {&m->rendezvous, &m->tcp, &m->local};
    for (size_t i = 0; i < sizeof acceptors / sizeof acceptors[0]; i++)
        membership_due(m, acceptor_tick(acceptors[i], now));
}

static void on_tick(control_client *client, double now, double stall)
{
    membership *m = (membership *)((char *)client - offsetof(membership, client));
    heartbeat_forgive(m, now, stall);
    tick_acceptors(m, now);
    dialing_tick(m, now);
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
    free_ended(m);
}

/* ---- Life -------------------------------------------------------------------------- */

/* Allocates the keys' page. A process that may lock no memory has them in ordinary pages. */
static ring_status make_terms(membership *m)
{
    m->job = sodium_malloc(2 * sizeof *m->job);
    if (m->job == NULL)
        return fail(RING_ERR_MEMORY, "keeping the key of a start");
    memset(m->job, 0, 2 * sizeof *m->job);
    m->terms = m->job + 1;
    m->job->rank = m->terms->rank = m->world.rank;
    m->job->size = m->terms->size = m->world.size;
    return RING_OK;
}

static ring_status fill(membership *m, const settings *s, uint32_t transports)
{
    const size_t size = (size_t)m->world.size;
    m->world.cards = calloc(size, sizeof *m->world.cards);
    m->left = calloc(size, sizeof *m->left);
    m->leavers = calloc(size, sizeof *m->leavers);
    m->unreachable = calloc(size, sizeof *m->unreachable);
    m->statements_of = calloc(size, sizeof *m->statements_of);
    m->lost = calloc(size, sizeof *m->lost);
    m->all.votes = calloc(size, sizeof *m->all.votes);
    bulletin *recent = &m->bulletins[BULLETIN_RECENT]; /* allocated now: waiting ranks take no
                                                          memory */
    recent->notes = calloc(BULLETIN_STATEMENTS, sizeof *recent->notes);
    recent->room = BULLETIN_STATEMENTS;
    if (m->world.cards == NULL || m->left == NULL || m->leavers == NULL || m->lost == NULL ||
        m->unreachable == NULL || m->statements_of == NULL || m->all.votes == NULL ||
        recent->notes == NULL)
        return fail(RING_ERR_MEMORY, "cards of %zu ranks", size);
    for (size_t r = 0; r < size; r++)
        m->world.cards[r].rank = -1;
    control_card *card = &m->world.cards[m->world.rank];
    card->rank = m->world.rank;
    card->transports = transports;
    card->runs_programs = s->device_programs;
    return card_fill(card);
}

static void init_changed(membership *m)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&m->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void init_parts(membership *m)
{
    m->client = (control_client){.rank = m->world.rank,
                                 .size = m->world.size,
                                 .due = CONTROL_NEVER,
                                 .tick = on_tick};
    m->rendezvous.source.fd = m->tcp.source.fd = m->local.source.fd = -1;
    m->unanswered = -1;
    m->attach_at = m->adopt_at = CONTROL_NEVER;
    m->groups = &m->all;
    m->references = 1;
    m->all.member = m;
    m->all.round = 1;
    m->all.decide_by = m->all.accuse_at = CONTROL_NEVER;
    init_changed(m);
}

ring_status membership_new(const settings *s, int size, int rank, uint32_t transports,
                           const char *launcher, membership **out)
{
    membership *m = calloc(1, sizeof *m);
    *out = NULL;
    if (m == NULL)
        return fail(RING_ERR_MEMORY, "joining as rank %d", rank);
    m->world.rank = rank;
    m->world.size = size;
    m->world.settings = *s;
    text_format(m->world.launcher, sizeof m->world.launcher, "%s", launcher);
    log_set_rank(rank, size);
    init_parts(m);
    ring_status status = make_terms(m);
    if (status == RING_OK)
        status = fill(m, s, transports);
    if (status == RING_OK)
        *out = m;
    else
        membership_free(m);
    return status;
}

ring_status membership_serve(membership *m)
{
    RING_TRY(control_enter(&m->client));
    m->served = true;
    return RING_OK;
}

void membership_close(membership *m)
{
    dialing_drop(m, 0);
    acceptor_close(&m->rendezvous);
    acceptor_close(&m->tcp);
    acceptor_close(&m->local);
    data_sockets_expire(m, CONTROL_NEVER);
    for (connection *c = m->connections; c != NULL; c = c->next)
        control_close(&c->source);
    free_ended(m);
}

void membership_free(membership *m)
{
    if (m->job != NULL && m->job->users != NULL)
        fclose(m->job->users);
    fd_close(&m->rendezvous.source.fd); /* of a start that failed before the thread had them */
    fd_close(&m->tcp.source.fd);
    fd_close(&m->local.source.fd);
    sodium_free(m->job); /* wipes it */
    pthread_cond_destroy(&m->changed);
    for (int i = 0; i < BULLETINS; i++)
        free(m->bulletins[i].notes);
    for (proposal *p = m->proposals, *next; p != NULL; p = next) {
        next = p->next;
        free(p);
    }
    roll_free(m);
    free(m->all.votes);
    free(m->all.decision);
    free(m->lost);
    free(m->statements_of);
    free(m->unreachable);
    free(m->leavers);
    free(m->left);
    free(m->world.cards);
    free(m);
}
