/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports a failure by a handshake and one control message: a verdict of rank 0, or a proposal of
 * another rank. It blocks the calling thread, because there may be no control thread.
 */
#include "last_word.h"

#include "control_message.h"
#include "handshake.h"

#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE 1.0      /* s: the longest wait until rank 0 listens, or the next rank connects */
#define TOTAL_SECONDS 5.0 /* s: rank 0 stops after this time, even if more ranks connect */
#define PEER_SECONDS 0.5  /* s: for one peer; short, since strangers may connect before members */
#define PAUSE 0.01        /* s: between two tries */

static double sooner(double a, double b)
{
    return a < b ? a : b;
}

static handshake_terms terms_of(const credential *c, const last_word *w)
{
    handshake_terms terms = {.rank = w->rank, .size = w->size};
    memcpy(terms.key, c->key, sizeof terms.key);
    address_pack(&c->at[0], terms.rank_0);
    return terms;
}

static ring_status finish_handshake(handshake *h, double until)
{
    ring_status status;
    while ((status = handshake_step(h)) == RING_IN_PROGRESS && clock_now() < until)
        (void)fd_await(h->fd, (short)handshake_events(h), until);
    return status;
}

/* Dials @p to. @return the socket after a handshake that has succeeded; -1 otherwise. */
static int dial(const handshake_terms *terms, enum handshake_kind kind, const net_address *to,
                double until, handshake *h)
{
    const handshake_purpose purpose = {.kind = kind};
    const int peer = kind == HANDSHAKE_REGISTER ? HANDSHAKE_MAKER : 0;
    int fd;
    if (address_socket(to, &fd) != RING_OK)
        return -1;
    fd_guard(fd);
    const handshake_hello hello = handshake_hello_to(terms, peer, &purpose);
    (void)connect(fd, &to->at.any, to->length);
    handshake_dial(h, fd, terms, &hello, PEER_SECONDS);
    if (finish_handshake(h, until) != RING_OK)
        fd_close(&fd);
    return fd;
}

/* Sends the failure as a control message of the kind @p kind. @return true if it was sent. */
static bool send_word(const handshake *h, const last_word *w, enum control_kind kind, double until)
{
    char host[64] = "?", text[CONTROL_TEXT];
    control_sealed word;
    control_keys keys;
    (void)gethostname(host, sizeof host - 1);
    text_format(text, sizeof text, "rank %d (%s): %s", w->rank, host, w->text);
    control_message_reason(&word.message, kind, w->rank, w->status, text);
    handshake_derive(h, &keys);
    control_message_seal(&word, keys.out, 0);
    sodium_memzero(&keys, sizeof keys);
    return fd_write_all(h->fd, &word, sizeof word, until) == RING_OK;
}

/* Waits until the peer has closed the connection. If this rank closed it while received bytes are
 * unread, the kernel would reset the connection, and the peer would lose the message. */
static void await_reader(int fd, double until)
{
    char unread[1024];
    shutdown(fd, SHUT_WR);
    while (fd_await(fd, POLLIN, until) == RING_OK && clock_now() < until)
        if (recv(fd, unread, sizeof unread, MSG_DONTWAIT) == 0)
            return;
}

/* ---- Rank 0 ------------------------------------------------------------------------ */

/* Reports the failure to a peer that has connected. @return true if it was a member. */
static bool answer(const handshake_terms *terms, const last_word *w, int fd)
{
    handshake h;
    const double until = clock_now() + PEER_SECONDS;
    handshake_accept(&h, fd, terms);
    if (finish_handshake(&h, until) != RING_OK || handshake_welcome(&h) != RING_OK ||
        !send_word(&h, w, CONTROL_VERDICT, until))
        return false;
    await_reader(fd, until);
    return true;
}

void last_word_to_joiners(const credential *c, const last_word *w, int listener)
{
    handshake_terms terms = terms_of(c, w);
    const double end = clock_now() + TOTAL_SECONDS;
    double until = clock_now() + PATIENCE;
    int notified = 0, maker = -1;
    handshake h;
    (void)listen(listener, SOMAXCONN);
    if (c->maker.length > 0) /* The maker sends the other ranks to the listener. */
        maker = dial(&terms, HANDSHAKE_REGISTER, &c->maker, until, &h);
    while (notified < w->size - 1 && fd_await(listener, POLLIN, sooner(until, end)) == RING_OK) {
        int fd = fd_guard(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd < 0)
            clock_sleep(PAUSE); /* there may be no free descriptor for a short time */
        if (fd >= 0 && answer(&terms, w, fd)) {
            until = clock_now() + PATIENCE;
            notified++;
        }
        fd_close(&fd);
    }
    fd_close(&maker);
    sodium_memzero(&terms, sizeof terms);
}

/* ---- The other ranks --------------------------------------------------------------- */

/* Reports the failure to rank 0 if it listens at @p to. @return true if the message was sent. */
static bool report_at(const handshake_terms *terms, const last_word *w, const net_address *to,
                      double until)
{
    handshake h;
    int fd = dial(terms, HANDSHAKE_JOIN, to, until, &h);
    if (fd >= 0 && h.rank_0.length > 0) { /* the maker of the id has answered */
        const net_address rank_0 = h.rank_0;
        fd_close(&fd);
        fd = dial(terms, HANDSHAKE_JOIN, &rank_0, until, &h);
    }
    const bool sent = fd >= 0 && send_word(&h, w, CONTROL_PROPOSAL, until);
    if (sent)
        await_reader(fd, until);
    fd_close(&fd);
    return sent;
}

void last_word_to_rank_0(const credential *c, const last_word *w)
{
    handshake_terms terms = terms_of(c, w);
    const double until = sooner(clock_now() + PATIENCE, w->deadline);
    bool sent = false;
    for (size_t i = 0; !sent && clock_now() < until; i++) {
        sent = report_at(&terms, w, &c->at[i % c->places], until);
        if (!sent)
            clock_sleep(PAUSE);
    }
    sodium_memzero(&terms, sizeof terms);
}
