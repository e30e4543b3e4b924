/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the listeners on one address, never on the wildcard address, and admits peers. An admitted
 * connection becomes an edge of the tree or a data socket.
 */
#include "listeners.h"

#include "data_sockets.h"
#include "encryption.h"
#include "own_address.h"
#include "peer_credentials.h"
#include "verdict.h"

#include <sodium.h>
#include <string.h>

#define LACK_SECONDS 1.0 /* a rank that lacks descriptors for longer fails */

/* ---- Addresses --------------------------------------------------------------------- */

/* Chooses the address that the settings ask for; by default the one from which packets to rank 0
 * leave. Without a secret the settings are ignored; the address is then 127.0.0.1, as that of rank
 * 0. */
static ring_status choose_address(const settings *s, const credential *c, int rank,
                                  net_address *own)
{
    own->length = 0;
    if (!c->check_uid)
        RING_TRY(address_chosen(s, own));
    else if (rank == 0 && (s->address[0] != '\0' || s->interface[0] != '\0'))
        log_at(s->address[0] != '\0' ? LOG_WARN : LOG_INFO,
               "without a secret libring listens on 127.0.0.1 only; RING_ADDR and "
               "RING_SOCKET_IFNAME are ignored");
    return own->length != 0 ? RING_OK : address_towards(&c->at[0], own);
}

static ring_status bind_tcp(membership *m, const net_address *own)
{
    net_address at = *own;
    int fd;
    char text[ADDRESS_TEXT_MAX];
    address_set_port(&at, 0);
    if (address_bind(&at, &fd) != RING_OK)
        return fail(RING_ERR_SYSTEM, "no port is free at %s", address_text(own, text));
    m->tcp.source.fd = fd_guard(fd);
    address_pack(&at, m->world.cards[m->world.rank].address);
    return RING_OK;
}

static ring_status bind_local(membership *m)
{
    int fd;
    control_card *card = &m->world.cards[m->world.rank];
    address_unix_name(card->unix_name);
    net_address at = address_unix(card->unix_name);
    if (address_bind(&at, &fd) != RING_OK)
        return fail(RING_ERR_SYSTEM, "%s", fail_text()); /* not RING_IN_PROGRESS */
    m->local.source.fd = fd_guard(fd);
    return RING_OK;
}

ring_status listeners_bind(membership *m, const credential *c)
{
    net_address own;
    RING_TRY(encryption_choose(&m->world.settings, c, m->world.rank));
    RING_TRY(choose_address(&m->world.settings, c, m->world.rank, &own));
    memcpy(m->job->key, c->key, sizeof m->job->key);
    address_pack(&c->at[0], m->job->rank_0);
    if (c->check_uid && (m->job->users = m->terms->users = peer_table()) == NULL)
        return fail(RING_ERR_SYSTEM,
                    "reading the kernel's table of connections: %m; set RING_SECRET_FILE");
    RING_TRY(bind_tcp(m, &own));
    return bind_local(m);
}

/* ---- Peers ------------------------------------------------------------------------ */

static void on_admitted(acceptor *a, int fd, const handshake *h)
{
    membership *m = a->context;
    const int kind = h->dialer.purpose.kind;
    if (kind == HANDSHAKE_LINK) {
        data_sockets_admit(m, h, a == &m->local, fd);
        return;
    }
    connection *c = NULL;
    if (kind == HANDSHAKE_CONTROL)
        c = connection_new(m, fd, h, true);
    else
        fd_close(&fd);
    if (c == NULL)
        return;
    c->no_message_yet = true;
    connection_write(c);
}

/* Decides about a member that has proved its membership: acceptor.wants(). */
static ring_status on_proved(acceptor *a, const handshake *h)
{
    return h->dialer.purpose.kind == HANDSHAKE_LINK ? data_sockets_want(a->context, &h->dialer)
                                                    : RING_OK;
}

/* If no descriptor is free, a start fails at once. After the start, descriptors may be freed soon;
 * if they are not, this rank fails, so that peers do not wait for it until their deadline. */
static void on_refused(acceptor *a, ring_status status)
{
    membership *m = a->context;
    const double now = clock_now();
    log_debug("%s", fail_text());
    if (status != RING_ERR_SYSTEM)
        return;
    if (now - m->lack.last > 2 * LACK_SECONDS)
        m->lack.since = now;
    m->lack.last = now;
    if (m->state < STATE_RUNNING || now - m->lack.since > LACK_SECONDS)
        verdict_propose_own(m, status);
}

ring_status listeners_open(membership *m, const unsigned char session[HANDSHAKE_SESSION])
{
    memcpy(m->terms->session, session, HANDSHAKE_SESSION);
    crypto_auth_hmacsha256(m->terms->key, session, HANDSHAKE_SESSION, m->job->key);
    const acceptor like = {.source.client = &m->client,
                           .terms = m->terms,
                           .wants = on_proved,
                           .admit = on_admitted,
                           .refuse = on_refused,
                           .context = m};
    RING_TRY(acceptor_open(&m->tcp, &like, m->tcp.source.fd));
    return acceptor_open(&m->local, &like, m->local.source.fd);
}
