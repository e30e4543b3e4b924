/* SPDX-License-Identifier: Apache-2.0
 *
 * Dials all addresses at which rank 0 may listen until it answers, sends this rank's card, and
 * waits for the cards of all ranks. While rank 0 does not answer, it looks for a new id in the
 * exchange.
 */
#include "joining.h"

#include "listeners.h"
#include "membership.h"
#include "numbers.h"
#include "peers.h"
#include "verdict.h"

#include <sodium.h>
#include <string.h>

/* s: the time after the deadline in which rank 0 sends the reason why the start has failed. */
#define VERDICT_PATIENCE 2.0
#define LOOK_SECONDS 0.01 /* between two calls of id_exchange_look() */
/* s: the time in which rank 0 must answer a second dial. */
#define RETURN_PATIENCE 1.0

/* The state of the search for rank 0. */
typedef struct search {
    membership *member;
    credential *credential;
    id_exchange *exchange;
} search;

/* ---- The connection to rank 0 --------------------------------------------------------- */

bool joining_compose(membership *m, connection *c, control_message *out)
{
    if (c->edge || m->world.rank == 0)
        return false;
    if (!c->announced_card) {
        c->announced_card = true;
        control_message_begin(out, CONTROL_CARD, m->world.rank);
        out->body.join.remaining = m->world.deadline - clock_now();
        out->body.join.card = m->world.cards[m->world.rank];
        return true;
    }
    if (m->state == STATE_JOINING || c->announced_seated || membership_has_failed(m))
        return false;
    c->announced_seated = true;
    control_message_begin(out, CONTROL_SEATED, m->world.rank);
    return true;
}

static void on_redialed(dialer *d, ring_status status, int fd)
{
    membership *m = d->context;
    connection *c = status == RING_OK ? connection_new(m, fd, &d->handshake, false) : NULL;
    if (c != NULL)
        connection_write(c);
    else
        verdict_decide(m, RING_ERR_PEER,
                       "rank 0 was lost while ranks were joining: the peer closed the connection");
}

/* Dials rank 0 a second time, since the connection may have broken although rank 0 is alive. If
 * rank 0 has received this rank's card, it counts the break as a loss, and the start fails;
 * otherwise it still waits for this rank. */
void joining_on_close(membership *m, const connection *c)
{
    const dialer once = {.purpose.kind = HANDSHAKE_JOIN,
                         .terms = m->job,
                         .to = m->start.root_at,
                         .patience = RETURN_PATIENCE,
                         .deadline = CONTROL_NEVER,
                         .done = on_redialed};
    if (c->announced_seated)
        return;
    if (m->start.came_back || peers_start_dialer(m, &once) != RING_OK)
        verdict_decide(m, RING_ERR_PEER,
                       "rank 0 was lost while ranks were joining: the peer closed the connection");
    m->start.came_back = true;
}

/* ---- Finding rank 0 ---------------------------------------------------------------- */

/* Opens this rank's listeners, and sends its card over the connection to rank 0. */
static void on_found(membership *m, const handshake *h, int fd)
{
    ring_status status = listeners_open(m, h->acceptor.session);
    connection *c = NULL;
    peers_drop_dialers(m, HANDSHAKE_JOIN);
    if (status != RING_OK)
        fd_close(&fd);
    else if ((c = connection_new(m, fd, h, false)) == NULL)
        status = fail(RING_ERR_MEMORY, "no memory to join as rank %d", m->world.rank);
    m->start.at_rank_0 = c != NULL;
    if (c != NULL)
        connection_write(c);
    else
        verdict_decide(m, status, fail_text());
    pthread_cond_broadcast(&m->changed);
}

static ring_status dial_place(membership *m, const net_address *to, bool listens_always);

static void on_dialed(dialer *d, ring_status status, int fd)
{
    membership *m = d->context;
    char text[CONTROL_TEXT], place[ADDRESS_TEXT_MAX];
    m->start.root_at = d->to;
    text_format(text, sizeof text, "%s", status != RING_OK ? fail_text() : "");
    if (status == RING_ERR_PEER && m->start.moved)
        text_format(text, sizeof text, "rank 0 has ended at %s: %s", address_text(&d->to, place),
                    d->text);
    else if (status == RING_ERR_PEER && d->listens_always)
        peers_id_ended(d, text);
    const bool moves = status == RING_OK && d->handshake.rank_0.length > 0;
    if (moves || membership_has_failed(m)) /* before it has joined, so rank 0 need not know */
        fd_close(&fd);
    if (membership_has_failed(m))
        return;
    m->start.moved = moves;
    if (moves)
        status = dial_place(m, &d->handshake.rank_0, true);
    else if (status == RING_OK)
        on_found(m, &d->handshake, fd);
    if (status != RING_OK)
        verdict_decide(m, status, moves ? fail_text() : text);
}

/* @param listens_always  the maker of the id listens there, or has sent this rank to rank 0. */
static ring_status dial_place(membership *m, const net_address *to, bool listens_always)
{
    const dialer like = {.purpose.kind = HANDSHAKE_JOIN,
                         .terms = m->job,
                         .to = *to,
                         .patience = HANDSHAKE_SECONDS,
                         .deadline = CONTROL_NEVER,
                         .most_pause = m->start.one_place ? 0.05 : 0.2,
                         .frugal = true,
                         .listens_always = listens_always,
                         .done = on_dialed};
    return peers_start_dialer(m, &like);
}

/* Starts a dialer for each address of the credential. */
static ring_status dial_places(search *v)
{
    membership *m = v->member;
    const credential *c = v->credential;
    memcpy(m->job->key, c->key, sizeof m->job->key);
    m->start.one_place = c->places == 1;
    /* Runs backwards, so that the dialer of the first address is the first in the list. */
    for (size_t i = c->places; i-- > 0;)
        RING_TRY(dial_place(m, &c->at[i], c->maker.length > 0));
    return RING_OK;
}

/* Looks up the id again, and dials the new addresses if the id has changed. Releases the lock
 * during the lookup, since files may be slow. */
static ring_status refresh_places(search *v)
{
    ring_unique_id id;
    credential fresh;
    control_unlock();
    ring_status status = id_exchange_look(v->exchange, &id);
    if (status == RING_OK && credential_from_id(&id, &fresh) != RING_OK)
        status = RING_IN_PROGRESS;
    control_lock();
    const bool news = status == RING_OK && !v->member->start.at_rank_0 &&
                      (!address_equal(&fresh.at[0], &v->credential->at[0]) ||
                       memcmp(fresh.key, v->credential->key, sizeof fresh.key) != 0);
    if (news)
        *v->credential = fresh;
    sodium_memzero(&fresh, sizeof fresh);
    sodium_memzero(&id, sizeof id);
    if (!news)
        return status == RING_IN_PROGRESS || v->member->start.at_rank_0 ? RING_OK : status;
    peers_drop_dialers(v->member, HANDSHAKE_JOIN);
    return dial_places(v);
}

/* A failed try of a dialer makes a tick due, so this runs after each of them. */
void joining_tick(membership *m)
{
    char text[ADDRESS_TEXT_MAX];
    const dialer *first = m->dialers;
    if (m->start.warned || !m->start.one_place || first == NULL || first->why != RING_ERR_AUTH ||
        first->purpose.kind != HANDSHAKE_JOIN)
        return;
    m->start.warned = true;
    log_warn("at %s, where %s should be: %s; retrying", address_text(&first->to, text),
             first->listens_always && !m->start.moved ? "the process that made the unique id"
                                                      : "rank 0",
             first->text);
}

/* Fails with the reason why rank 0 was not found. @param first  the first dialer, or NULL. */
static ring_status not_found(const membership *m, const dialer *first, const credential *c)
{
    char limit[NUMBER_LIMIT_MAX], text[ADDRESS_TEXT_MAX];
    const bool tried = first != NULL && first->why != RING_OK;
    const bool stranger = c->places == 1 && tried && first->why == RING_ERR_AUTH;
    const bool at_maker = first != NULL && address_equal(&first->to, &c->maker);
    const bool held = at_maker && first->busy && first->handshake.state == HANDSHAKE_WELCOME;
    const net_address *at = c->maker.length > 0 && first != NULL ? &first->to : &c->at[0];
    return fail(stranger ? RING_ERR_AUTH : RING_ERR_TIMEOUT,
                "rank %d did not reach rank 0%s at %s%s in time (RING_INIT_TIMEOUT=%s): %s; is %s "
                "running, and is the address right?",
                m->world.rank, at_maker ? " through the process that made the unique id," : "",
                address_text(at, text), c->places > 1 ? " and up" : "",
                number_limit_text(m->world.settings.init_timeout, limit),
                held    ? "that process waits for rank 0"
                : tried ? first->text
                        : "no answer",
                at_maker && !held ? "that process" : "rank 0");
}

/* Dials until rank 0 has admitted this rank, the start has failed, or the deadline has passed. */
static ring_status find(search *v)
{
    membership *m = v->member;
    RING_TRY(dial_places(v));
    while (!m->start.at_rank_0 && !membership_has_failed(m)) {
        const double now = clock_now(), look = now + LOOK_SECONDS;
        const bool looks = v->exchange != NULL && look < m->world.deadline;
        const bool woken = control_wait(&m->changed, looks ? look : m->world.deadline);
        const dialer *first = m->dialers;
        if (m->start.at_rank_0 || membership_has_failed(m))
            break;
        if (clock_now() >= m->world.deadline)
            return not_found(m, first, v->credential);
        if (!woken && looks && (first == NULL || !first->busy))
            RING_TRY(refresh_places(v));
    }
    return m->start.at_rank_0 ? RING_OK : verdict_status(m);
}

/* ---- For the caller ---------------------------------------------------------------- */

static ring_status await_cards(membership *m)
{
    const double limit = m->world.deadline + VERDICT_PATIENCE;
    while (m->state < STATE_LINKING && !membership_has_failed(m))
        if (!control_wait(&m->changed, limit))
            return fail(RING_ERR_TIMEOUT,
                        "rank 0 did not report in time (RING_INIT_TIMEOUT) that all ranks have "
                        "joined; is it stopped?");
    return m->state >= STATE_LINKING ? RING_OK : verdict_status(m);
}

ring_status joining_run(membership *m, credential *c, id_exchange *exchange)
{
    search v = {.member = m, .credential = c, .exchange = exchange};
    RING_TRY(listeners_bind(m, c));
    RING_TRY(membership_serve(m));
    control_lock();
    ring_status status = find(&v);
    if (status == RING_OK)
        status = await_cards(m);
    control_unlock();
    return status;
}
