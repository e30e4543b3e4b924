/* SPDX-License-Identifier: Apache-2.0
 *
 * Receives the terms, which are rank 0's settings, and the cards from the parent, and sends them to
 * the children. Rank 0 uses the connections over which its children joined. The other ranks dial
 * their children, which have joined at rank 0 and wait for the cards.
 */
#include "handout.h"

#include "encryption.h"
#include "losses.h"
#include "numbers.h"
#include "peers.h"
#include "verdict.h"

#include <string.h>

#define MOST_PAUSE 0.05 /* s: the longest pause between two tries of a dialer */

/* ---- Receiving --------------------------------------------------------------------- */

/* Warns if this rank's value of a setting differs from rank 0's. */
static void warn_overruled(const char *name, double mine, double theirs)
{
    char my_text[NUMBER_LIMIT_MAX], their_text[NUMBER_LIMIT_MAX];
    if (mine > theirs || mine < theirs)
        log_warn("%s=%s on this rank, but rank 0's %s applies to all ranks", name,
                 number_limit_text(mine, my_text), number_limit_text(theirs, their_text));
}

/* Adopts rank 0's settings. */
static ring_status take_terms(membership *m, const control_message *message)
{
    settings *s = &m->world.settings;
    const char *algo = message->body.terms.algo;
    m->world.deadline = clock_now() + message->body.terms.remaining;
    warn_overruled("RING_TIMEOUT", s->timeout, message->body.terms.timeout);
    warn_overruled("RING_PEER_TIMEOUT", s->peer_timeout, message->body.terms.peer_timeout);
    if (s->channels > 0)
        warn_overruled("RING_CHANNELS", s->channels, message->body.terms.channels);
    warn_overruled("RING_CHECKSUM", s->checksum, message->body.terms.checksum);
    warn_overruled("RING_REPRODUCIBLE", s->reproducible, message->body.terms.reproducible);
    if (strncmp(s->algo, algo, sizeof s->algo) != 0)
        log_warn("RING_ALGO=%s on this rank, but rank 0's \"%.31s\" applies to all ranks", s->algo,
                 algo);
    s->timeout = message->body.terms.timeout;
    s->peer_timeout = message->body.terms.peer_timeout;
    s->channels = message->body.terms.channels;
    s->checksum = message->body.terms.checksum == 1;
    s->reproducible = message->body.terms.reproducible == 1;
    text_format(s->algo, sizeof s->algo, "%.31s", algo);
    return encryption_follow(s, (encryption)message->body.terms.encrypt);
}

void handout_receive(membership *m, connection *c, const control_message *message)
{
    if (m->state != STATE_JOINING || m->world.rank == 0 || c->peer != tree_parent(m->world.rank)) {
        losses_protocol_error(m, c);
    } else if (message->kind == CONTROL_TERMS) {
        connection_join_tree(c); /* a child of rank 0 keeps the connection over which it joined */
        const ring_status status = take_terms(m, message);
        if (status != RING_OK)
            verdict_propose_own(m, status);
    } else if (message->rank == m->start.cards_here) {
        memcpy(&m->world.cards[message->rank], message->body.cards,
               (size_t)message->count * sizeof m->world.cards[0]);
        m->start.cards_here += message->count;
        if (m->start.cards_here == m->world.size)
            handout_begin(m);
    } else {
        losses_protocol_error(m, c);
    }
}

/* ---- Sending ----------------------------------------------------------------------- */

static void begin_sending(connection *c)
{
    connection_join_tree(c);
    c->gives_cards = true;
}

static void on_dialed(dialer *d, ring_status status, int fd)
{
    membership *m = d->context;
    connection *c = status == RING_OK ? connection_new(m, fd, &d->handshake, true) : NULL;
    if (c == NULL) {
        verdict_propose_own(m, fail(status != RING_OK ? status : RING_ERR_MEMORY,
                                    "sending the cards to rank %d (%s): %s", d->peer,
                                    m->world.cards[d->peer].hostname, fail_text()));
        return;
    }
    begin_sending(c);
    connection_write(c);
    handout_check(m);
}

static void dial_child(membership *m, int child)
{
    const dialer steady = {.purpose.kind = HANDSHAKE_CONTROL,
                           .patience = CONTROL_NEVER,
                           .most_pause = MOST_PAUSE,
                           .deadline = m->world.deadline,
                           .done = on_dialed};
    const bool local = membership_is_local(m, child);
    const ring_status status = peers_start_dialer_to(m, child, local, &steady);
    if (status != RING_OK)
        verdict_propose_own(m, status);
}

static void send_to_children(membership *m)
{
    const int first = tree_first_child(m->world.rank);
    if (m->world.rank > 0) {
        for (int i = 0; i < tree_children(m->world.rank, m->world.size); i++)
            dial_child(m, first + i);
        return;
    }
    for (connection *c = m->connections; c != NULL; c = c->next)
        if (c->has_card && tree_parent(c->peer) == 0)
            begin_sending(c);
}

void handout_begin(membership *m)
{
    m->state = STATE_CARDS;
    send_to_children(m);
    peers_flush(m);
    handout_check(m);
}

static void compose_terms(const membership *m, control_message *out)
{
    const settings *s = &m->world.settings;
    control_message_begin(out, CONTROL_TERMS, m->world.rank);
    out->body.terms.remaining = m->world.deadline - clock_now();
    out->body.terms.timeout = s->timeout;
    out->body.terms.peer_timeout = s->peer_timeout;
    out->body.terms.channels = s->channels;
    out->body.terms.checksum = s->checksum;
    out->body.terms.reproducible = s->reproducible;
    out->body.terms.encrypt = (int32_t)s->encrypt;
    text_format(out->body.terms.algo, sizeof out->body.terms.algo, "%s", s->algo);
}

bool handout_compose(membership *m, connection *c, control_message *out)
{
    const int left = m->world.size - c->announced_cards;
    if (!c->gives_cards)
        return false;
    if (!c->announced_terms) {
        c->announced_terms = true;
        compose_terms(m, out);
        return true;
    }
    control_message_begin(out, CONTROL_CARDS, c->announced_cards);
    out->count = left < CONTROL_CARDS_MOST ? left : CONTROL_CARDS_MOST;
    memcpy(out->body.cards, &m->world.cards[c->announced_cards],
           (size_t)out->count * sizeof out->body.cards[0]);
    c->announced_cards += out->count;
    c->gives_cards = c->announced_cards < m->world.size;
    return true;
}

void handout_check(membership *m)
{
    int given = 0;
    if (m->state != STATE_CARDS)
        return;
    for (const connection *c = m->connections; c != NULL; c = c->next)
        given += c->announced_cards == m->world.size && !connection_is_busy(c);
    if (given < tree_children(m->world.rank, m->world.size))
        return;
    m->state = STATE_LINKING;
    membership_due(m, m->world.deadline);
    pthread_cond_broadcast(&m->changed);
}
