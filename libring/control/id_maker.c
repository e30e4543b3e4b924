/* SPDX-License-Identifier: Apache-2.0
 *
 * Accepts the connections of ranks for each id, and answers them. While rank 0 joins, it keeps its
 * connection open; afterwards the id is closed. Rank 0 registers again if the connection breaks.
 */
#include "id_maker.h"

#include "acceptor.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* s: the time in which rank 0 registers again after its connection has broken. */
#define RETURN_SECONDS 1.0

/** A rank that has proved its membership: rank 0, or one that waits for rank 0's address. */
typedef struct visitor {
    control_source source;
    handshake handshake;
    struct visitor *next;
} visitor;

typedef struct id_maker {
    control_client client;
    ring_unique_id id;
    handshake_terms terms;
    net_address rank_0; /* length 0: it has not registered */
    acceptor acceptor;
    visitor *visitors;
    double expires;
    unsigned generation; /* of forks; a child has a copy of the list, and no thread */
    struct id_maker *next;
} id_maker;

static id_maker *list;

/* ---- Visitors ---------------------------------------------------------------------- */

static void remove_visitor(visitor **at)
{
    visitor *v = *at;
    *at = v->next;
    control_close(&v->source);
    free(v);
}

/* Closes the connections of this purpose. It first sends rank 0's address to joining ranks. */
static void dismiss(id_maker *m, enum handshake_kind kind)
{
    for (visitor **at = &m->visitors; *at != NULL;) {
        if ((*at)->handshake.dialer.purpose.kind != kind) {
            at = &(*at)->next;
            continue;
        }
        if (kind == HANDSHAKE_JOIN && m->rank_0.length > 0)
            handshake_redirect(&(*at)->handshake);
        remove_visitor(at);
    }
}

/* A visitor sends nothing, so it has ended, or its connection has broken. */
static void on_visitor(control_source *s)
{
    id_maker *m = (id_maker *)s->client;
    visitor **at = &m->visitors;
    while (&(*at)->source != s)
        at = &(*at)->next;
    if ((*at)->handshake.dialer.purpose.kind == HANDSHAKE_REGISTER)
        m->expires = clock_now() + RETURN_SECONDS;
    remove_visitor(at);
    control_due(&m->client, m->expires);
}

/* Refuses another rank 0. Joining ranks get no welcome, but an address later. */
static ring_status on_proved(acceptor *a, const handshake *h)
{
    const id_maker *m = a->context;
    if (h->dialer.purpose.kind == HANDSHAKE_JOIN)
        return RING_IN_PROGRESS;
    return m->rank_0.length == 0 || address_equal(&m->rank_0, &h->rank_0)
               ? RING_OK
               : fail(RING_ERR_ABORTED, "another rank 0 has joined");
}

static void on_admitted(acceptor *a, int fd, const handshake *h)
{
    id_maker *m = a->context;
    visitor *v = calloc(1, sizeof *v);
    if (v == NULL) {
        fd_close(&fd); /* The rank dials again. */
        return;
    }
    if (h->dialer.purpose.kind == HANDSHAKE_REGISTER) {
        dismiss(m, HANDSHAKE_REGISTER); /* a connection that has broken */
        m->rank_0 = h->rank_0;
        address_pack(&m->rank_0, m->terms.rank_0);
        m->expires = CONTROL_NEVER;
    }
    v->source = (control_source){.fd = fd, .client = &m->client, .ready = on_visitor};
    v->handshake = *h;
    v->next = m->visitors;
    m->visitors = v;
    if (control_watch(&v->source, EPOLLIN) != RING_OK)
        on_visitor(&v->source);
    if (m->rank_0.length > 0)
        dismiss(m, HANDSHAKE_JOIN);
}

static void on_refused(acceptor *a, ring_status status)
{
    const bool repeats = status == RING_ERR_SYSTEM && a->warned > 0;
    id_maker *m = a->context;
    log_at(repeats ? LOG_DEBUG : LOG_WARN, "serving a unique id: %s", fail_text());
    a->warned = clock_now();
    if (status == RING_ERR_SYSTEM)
        dismiss(m, HANDSHAKE_JOIN); /* they dial again, so that rank 0 is accepted before them */
    else if (m->rank_0.length == 0)
        m->expires = a->warned; /* rank 0 has failed, and ranks that wait must learn that */
    control_due(&m->client, m->expires);
}

/* ---- Life -------------------------------------------------------------------------- */

/* Closes all connections and removes the id from the list. */
static void stop(id_maker *m)
{
    id_maker **at = &list;
    m->expires = CONTROL_NEVER; /* the thread may still call tick() */
    acceptor_close(&m->acceptor);
    dismiss(m, HANDSHAKE_JOIN);
    dismiss(m, HANDSHAKE_REGISTER);
    while (*at != NULL && *at != m)
        at = &(*at)->next;
    if (*at != NULL)
        *at = m->next;
}

static void wipe(id_maker *m)
{
    sodium_memzero(m, sizeof *m);
    free(m);
}

static void tick(control_client *client, double now, double stall)
{
    id_maker *m = (id_maker *)client;
    (void)stall;
    if (now < m->expires) {
        control_due(client, m->expires);
        control_due(client, acceptor_tick(&m->acceptor, now));
        return;
    }
    stop(m);
    control_exit_by_tick(client);
    wipe(m);
}

ring_status id_maker_serve(const ring_unique_id *id, int bound, double seconds)
{
    credential c;
    id_maker *m = calloc(1, sizeof *m);
    ring_status status = m != NULL ? credential_from_id(id, &c)
                                   : fail(RING_ERR_MEMORY, "no memory to make a unique id");
    if (status == RING_OK) {
        m->client.tick = tick;
        m->expires = CONTROL_NEVER; /* the thread may call tick() at once */
        m->acceptor.source.fd = -1;
        status = control_enter(&m->client);
    }
    if (status != RING_OK) {
        fd_close(&bound);
        free(m);
        return status;
    }
    m->id = *id;
    m->terms.rank = HANDSHAKE_MAKER;
    memcpy(m->terms.key, c.key, sizeof m->terms.key);
    sodium_memzero(&c, sizeof c);
    m->generation = fork_generation();
    const acceptor like = {.source.client = &m->client,
                           .terms = &m->terms,
                           .wants = on_proved,
                           .admit = on_admitted,
                           .refuse = on_refused,
                           .context = m};
    control_lock();
    m->expires = clock_now() + seconds;
    m->next = list;
    list = m;
    status = acceptor_open(&m->acceptor, &like, bound);
    if (status == RING_OK)
        control_due(&m->client, m->expires);
    else
        stop(m);
    control_unlock();
    if (status != RING_OK) {
        control_exit(&m->client);
        wipe(m);
    }
    return status;
}

int id_maker_take(const ring_unique_id *id)
{
    int listener = -1;
    control_lock();
    id_maker *m = list;
    while (m != NULL && (m->generation != fork_generation() || m->rank_0.length > 0 ||
                         memcmp(&m->id, id, sizeof *id) != 0))
        m = m->next;
    if (m != NULL) {
        listener = control_release(&m->acceptor.source);
        stop(m);
    }
    control_unlock();
    if (m != NULL) {
        control_exit(&m->client);
        wipe(m);
    }
    return listener;
}
