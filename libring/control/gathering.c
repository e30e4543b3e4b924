/* SPDX-License-Identifier: Apache-2.0
 *
 * Admits joining ranks at rank 0 and stores their cards. When the last card arrives, the listener
 * for joining ranks is closed and the cards are handed out. The start fails if two processes join
 * as the same rank, or if a rank is lost.
 */
#include "gathering.h"

#include "handout.h"
#include "listeners.h"
#include "losses.h"
#include "membership.h"
#include "numbers.h"
#include "peers.h"
#include "verdict.h"

#include <sodium.h>
#include <string.h>

void gathering_close(membership *m)
{
    acceptor_close(&m->rendezvous);
    peers_drop_dialers(m, HANDSHAKE_REGISTER);
    control_close(&m->start.maker);
}

/* ---- Cards ------------------------------------------------------------------------- */

static bool is_missing(const membership *m, int rank)
{
    return m->world.cards[rank].rank != rank;
}

/* Stores a card, and hands out the cards after the last one. The earliest deadline of all ranks
 * becomes the deadline of the start. */
static void store_card(membership *m, const control_message *message)
{
    const control_card *card = &message->body.join.card;
    const double deadline = clock_now() + message->body.join.remaining;
    m->world.cards[card->rank] = *card;
    m->start.cards_here++;
    if (deadline < m->world.deadline)
        m->world.deadline = deadline;
    membership_due(m, m->world.deadline);
    log_debug("rank %d (%s, pid %d) joined", card->rank, card->hostname, card->pid);
    if (m->start.cards_here < m->world.size)
        return;
    gathering_close(m);
    handout_begin(m);
}

void gathering_receive(membership *m, connection *c, const control_message *message)
{
    if (message->kind == CONTROL_SEATED) {
        c->left = true; /* the rank may close this connection without being lost */
        connection_shut(c);
        return;
    }
    if (message->rank != c->peer || c->has_card) {
        control_close(&c->source);
        return;
    }
    const bool failed = membership_has_failed(m);
    c->has_card = true;
    if (!failed && !is_missing(m, c->peer)) {
        char text[CONTROL_TEXT];
        const control_card *first = &m->world.cards[c->peer], *second = &message->body.join.card;
        text_format(text, sizeof text,
                    "two processes claim to be rank %d: pid %d on %s and pid %d on %s",
                    second->rank, first->pid, first->hostname, second->pid, second->hostname);
        verdict_decide(m, RING_ERR_CONFIG, text);
    } else if (!failed && m->state == STATE_JOINING) {
        store_card(m, message);
    }
    peers_flush(m);
}

/* A rank whose connection breaks before its card has arrived has not joined, so it is not lost. */
void gathering_on_close(membership *m, const connection *c)
{
    if (c->has_card && !c->left)
        losses_report(m, c->peer, LOSS_ENDED, "its process ended or its connection broke");
}

/* ---- Joining ranks ------------------------------------------------------------------ */

static void on_admitted(acceptor *a, int fd, const handshake *h)
{
    if (h->dialer.purpose.kind != HANDSHAKE_JOIN)
        fd_close(&fd);
    else if (connection_new(a->context, fd, h, false) == NULL)
        verdict_propose_own(a->context,
                            fail(RING_ERR_MEMORY, "no memory to admit rank %d", handshake_peer(h)));
}

/* Fails the start. A rank that is refused with RING_ERR_CONFIG gets the reason in its own
 * handshake, so it counts as notified. */
static void on_refused(acceptor *a, ring_status status)
{
    membership *m = a->context;
    m->start.notified += status == RING_ERR_CONFIG;
    verdict_decide(m, status, fail_text());
}

/* Appends "1" or "3-5", or ends the list with "..." when it is full. */
static void add_range(int first, int last, char *out, size_t bytes)
{
    const size_t used = strlen(out);
    const char *comma = used > 0 ? ", " : "";
    if (used + 24 > bytes) {
        if (used >= 3 && out[used - 1] != '.')
            memset(out + used - 3, '.', 3);
    } else if (first == last) {
        text_format(out + used, bytes - used, "%s%d", comma, first);
    } else {
        text_format(out + used, bytes - used, "%s%d-%d", comma, first, last);
    }
}

/* Writes the missing ranks as "1, 3-5". @return their number. */
static int list_missing(const membership *m, char *out, size_t bytes)
{
    int count = 0;
    out[0] = '\0';
    for (int first = 0; first < m->world.size; first++) {
        if (!is_missing(m, first))
            continue;
        int last = first;
        while (last + 1 < m->world.size && is_missing(m, last + 1))
            last++;
        add_range(first, last, out, bytes);
        count += last - first + 1;
        first = last;
    }
    return count;
}

/* Appends the reason why the maker of the id cannot send the missing ranks to rank 0. */
static void add_maker(const membership *m, char text[CONTROL_TEXT])
{
    char place[ADDRESS_TEXT_MAX];
    const size_t used = strlen(text);
    for (const dialer *d = m->dialers; d != NULL; d = d->next)
        if (!d->ended && d->purpose.kind == HANDSHAKE_REGISTER)
            text_format(text + used, CONTROL_TEXT - used,
                        "; rank 0 did not reach the process that made the unique id, at %s: %s",
                        address_text(&d->to, place), d->why != RING_OK ? d->text : "no answer");
}

/* Fails the start with the list of the missing ranks. */
static void time_out(membership *m)
{
    const double limit = m->world.settings.init_timeout;
    char number[NUMBER_LIMIT_MAX], ranks[200], place[ADDRESS_TEXT_MAX] = "?", text[CONTROL_TEXT];
    net_address at = {.length = sizeof at.at};
    if (getsockname(m->rendezvous.source.fd, &at.at.any, &at.length) == 0)
        address_text(&at, place);
    const int count = list_missing(m, ranks, sizeof ranks);
    text_format(text, sizeof text,
                "%s %s of %d did not reach rank 0 (%s at %s) in time (RING_INIT_TIMEOUT=%s%s)%s",
                count == 1 ? "rank" : "ranks", ranks, m->world.size, m->world.cards[0].hostname,
                place, number_limit_text(limit, number),
                limit >= NUMBER_NO_LIMIT ? " at rank 0, but another rank has a deadline" : "",
                address_is_loopback(&at) ? "; only ranks on this host can reach that address" : "");
    add_maker(m, text);
    verdict_decide(m, RING_ERR_TIMEOUT, text);
}

void gathering_tick(membership *m, double now)
{
    if (m->world.rank > 0 || m->state != STATE_JOINING || membership_has_failed(m))
        return;
    if (now >= m->world.deadline)
        time_out(m);
    else
        membership_due(m, m->world.deadline);
}

/* ---- The maker of the id --------------------------------------------------------------- */

static ring_status dial_maker(membership *m, const net_address *to);

/* Registers again, since the connection may have broken although the maker lives. */
static void on_maker_closed(control_source *s)
{
    membership *m = (membership *)((char *)s->client - offsetof(membership, client));
    control_close(s);
    if (dial_maker(m, &m->start.root_at) != RING_OK)
        verdict_decide(m, RING_ERR_MEMORY, fail_text());
}

static void on_registered(dialer *d, ring_status status, int fd)
{
    membership *m = d->context;
    char text[CONTROL_TEXT];
    if (status == RING_OK) {
        m->start.maker = (control_source){.fd = fd, .client = &m->client, .ready = on_maker_closed};
        status = control_watch(&m->start.maker, EPOLLIN);
    }
    if (status == RING_OK)
        return;
    text_format(text, sizeof text, "%s", fail_text());
    if (status == RING_ERR_ABORTED)
        text_format(text, sizeof text,
                    "another process has joined as rank 0 by the same unique id, "
                    "which can be used for one communicator only");
    else if (status == RING_ERR_PEER)
        peers_id_ended(d, text);
    verdict_decide(m, status == RING_ERR_ABORTED ? RING_ERR_USAGE : status, text);
}

static ring_status dial_maker(membership *m, const net_address *to)
{
    const dialer like = {.purpose.kind = HANDSHAKE_REGISTER,
                         .terms = m->job,
                         .to = *to,
                         .peer = HANDSHAKE_MAKER,
                         .patience = HANDSHAKE_SECONDS,
                         .most_pause = 0.05,
                         .deadline = CONTROL_NEVER,
                         .frugal = true,
                         .listens_always = true,
                         .done = on_registered};
    m->start.root_at = *to;
    return peers_start_dialer(m, &like);
}

/* ---- For the caller ---------------------------------------------------------------- */

static ring_status open_rendezvous(membership *m, int *listener)
{
    const acceptor like = {.source.client = &m->client,
                           .terms = m->job,
                           .admit = on_admitted,
                           .refuse = on_refused,
                           .context = m};
    const ring_status status = acceptor_open(&m->rendezvous, &like, *listener);
    if (status == RING_OK)
        *listener = -1;
    else
        (void)control_release(&m->rendezvous.source);
    return status;
}

/* Gathers the cards under the lock, which control_wait() releases meanwhile. */
static ring_status gather(membership *m, const credential *c, int *listener)
{
    unsigned char session[HANDSHAKE_SESSION];
    randombytes_buf(session, sizeof session);
    m->start.cards_here = 1;
    memcpy(m->job->session, session, sizeof session); /* joining ranks get it in the handshake */
    RING_TRY(listeners_open(m, session));
    RING_TRY(open_rendezvous(m, listener));
    if (c->maker.length > 0)
        RING_TRY(dial_maker(m, &c->maker));
    membership_due(m, m->world.deadline);
    while (m->state < STATE_LINKING && !membership_has_failed(m))
        (void)control_wait(&m->changed, CONTROL_NEVER);
    return m->state >= STATE_LINKING ? RING_OK : verdict_status(m);
}

ring_status gathering_run(membership *m, const credential *c, int *listener)
{
    RING_TRY(listeners_bind(m, c));
    RING_TRY(membership_serve(m));
    control_lock();
    const ring_status status = gather(m, c, listener);
    control_unlock();
    return status;
}
