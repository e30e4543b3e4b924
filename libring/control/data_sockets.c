/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens data sockets and passes each to the sink of its communicator exactly once. Sockets that
 * arrive before there is a sink are held in a list of the membership.
 */
#include "data_sockets.h"

#include "bulletin.h"
#include "peers.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>

#define MOST_PAUSE 0.05    /* s: the longest pause between two tries of a dialer */
enum { HELD_MOST = 1024 }; /* the most sockets that are held */

struct held_socket {
    handshake_purpose purpose;
    control_socket socket;
    int peer; /* its rank in the membership */
    bool local;
    double until; /* the time at which it is closed */
    held_socket *next;
};

/** A record of a socket that a sink has taken, so that no second one is opened for its purpose. */
struct opened_socket {
    int peer;
    uint16_t traffic, index;
    struct opened_socket *next;
};

/* ---- One socket for each purpose --------------------------------------------------- */

static bool is_opened(const group *g, int peer, uint16_t traffic, uint16_t index)
{
    const struct opened_socket *o = g->opened;
    while (o != NULL && (o->peer != peer || o->traffic != traffic || o->index != index))
        o = o->next;
    return o != NULL;
}

/* @return the dialer of a socket of @p g for a purpose; NULL if there is none. */
static dialer *dialer_of(const group *g, int peer, uint16_t traffic, uint16_t index)
{
    for (dialer *d = g->member->dialers; d != NULL; d = d->next)
        if (!d->ended && d->purpose.kind == HANDSHAKE_LINK && d->peer == peer &&
            d->purpose.communicator == g->world.id && d->purpose.traffic == traffic &&
            d->purpose.index == index)
            return d;
    return NULL;
}

static void remove_latest_opened(group *g)
{
    struct opened_socket *o = g->opened;
    g->opened = o->next;
    free(o);
}

ring_status data_sockets_want(const membership *m, const handshake_hello *hello)
{
    const handshake_purpose *p = &hello->purpose;
    const group *g = group_find(m, p->communicator);
    if (g == NULL ? group_was_left(m, p->communicator) ||
                        bulletin_find(m, CONTROL_VERDICT, p->communicator, 0) != NULL
                  : group_is_decided(g))
        return fail(RING_ERR_ABORTED, "this communicator has already ended on this rank");
    if (g != NULL && hello->rank < m->world.rank &&
        (is_opened(g, hello->rank, p->traffic, p->index) ||
         dialer_of(g, hello->rank, p->traffic, p->index) != NULL))
        return fail(RING_ERR_PEER, "this connection already exists");
    return RING_OK;
}

/* ---- Sockets for the sink ------------------------------------------------------------ */

/* Makes the socket blocking and passes it to the sink. @return false if it was not taken. */
static bool give_to_sink(group *g, int peer, const control_purpose *purpose,
                         const control_socket *socket)
{
    dialer *own = dialer_of(g, peer, purpose->traffic, purpose->index);
    struct opened_socket *o = g->sink != NULL ? malloc(sizeof *o) : NULL;
    if (o == NULL)
        return false;
    *o = (struct opened_socket){peer, purpose->traffic, purpose->index, g->opened};
    g->opened = o;
    if (own != NULL)
        dialer_drop(own);
    fcntl(socket->fd, F_SETFL, fcntl(socket->fd, F_GETFL) & ~O_NONBLOCK);
    if (g->sink(g->sink_context, group_rank(g, peer), purpose, RING_OK, socket))
        return true;
    remove_latest_opened(g);
    return false;
}

/* Passes @p socket to the sink, or closes it, and wipes its keys, of which the sink has a copy. */
static void hand_over(group *g, int peer, const control_purpose *purpose, control_socket *socket)
{
    if (group_rank(g, peer) < 0 || !give_to_sink(g, peer, purpose, socket)) {
        log_debug("closing a socket with rank %d that is not wanted (kind of traffic %u)", peer,
                  purpose->traffic);
        fd_close(&socket->fd);
    }
    sodium_memzero(socket, sizeof *socket);
}

static control_socket socket_of(const handshake *h, int fd)
{
    control_socket socket = {.fd = fd};
    handshake_derive(h, &socket.keys);
    return socket;
}

static control_purpose purpose_of(const handshake_purpose *p, bool local)
{
    return (control_purpose){.traffic = p->traffic,
                             .index = p->index,
                             .transport = p->transport,
                             .local = local};
}

/* ---- Held sockets ------------------------------------------------------------------- */

static void hold(membership *m, int peer, const handshake_purpose *purpose, bool local,
                 control_socket *socket)
{
    held_socket *h = m->held.count < HELD_MOST ? malloc(sizeof *h) : NULL;
    if (h == NULL) {
        log_debug(
            "closing a socket with rank %d: too many wait for communicators that do not exist yet",
            peer);
        fd_close(&socket->fd);
        return;
    }
    *h = (held_socket){.purpose = *purpose,
                       .socket = *socket,
                       .peer = peer,
                       .local = local,
                       .until = clock_now() + m->world.settings.timeout,
                       .next = m->held.sockets};
    m->held.sockets = h;
    m->held.count++;
    membership_due(m, h->until);
}

/* Removes the held sockets that expire by @p now, of one communicator or of all (NULL). Passes them
 * to the sink of @p taker, or closes them if it is NULL. */
static void release_held(membership *m, const uint64_t *communicator, double now, group *taker)
{
    for (held_socket **at = &m->held.sockets; *at != NULL;) {
        held_socket *h = *at;
        if (h->until > now || (communicator != NULL && h->purpose.communicator != *communicator)) {
            at = &h->next;
            continue;
        }
        const control_purpose purpose = purpose_of(&h->purpose, h->local);
        *at = h->next;
        m->held.count--;
        if (taker != NULL)
            hand_over(taker, h->peer, &purpose, &h->socket);
        else
            fd_close(&h->socket.fd);
        sodium_memzero(h, sizeof *h);
        free(h);
    }
}

void data_sockets_forget(membership *m, uint64_t communicator)
{
    release_held(m, &communicator, CONTROL_NEVER, NULL);
}

void data_sockets_expire(membership *m, double now)
{
    release_held(m, NULL, now, NULL);
    for (const held_socket *h = m->held.sockets; h != NULL; h = h->next)
        membership_due(m, h->until);
}

void data_sockets_admit(membership *m, const handshake *h, bool local, int fd)
{
    const handshake_hello *hello = &h->dialer;
    const control_purpose purpose = purpose_of(&hello->purpose, local);
    control_socket socket = socket_of(h, fd);
    group *g = group_find(m, hello->purpose.communicator);
    if (g == NULL || g->sink == NULL)
        hold(m, hello->rank, &hello->purpose, local, &socket);
    else
        hand_over(g, hello->rank, &purpose, &socket);
    sodium_memzero(&socket, sizeof socket);
}

void control_set_sink(control_world *world, control_sink *sink, void *context)
{
    group *g = group_of(world);
    control_lock();
    g->sink = sink;
    g->sink_context = context;
    if (sink != NULL)
        release_held(g->member, &world->id, CONTROL_NEVER, g);
    control_unlock();
}

/* ---- Dialing ----------------------------------------------------------------------- */

/* Reports a failed dial to the sink, with fail_text() as the reason. */
static void give_failure(group *g, int peer, const control_purpose *purpose, ring_status status)
{
    if (g->sink != NULL)
        (void)g->sink(g->sink_context, group_rank(g, peer), purpose, status, NULL);
}

static void on_dialed(dialer *d, ring_status status, int fd)
{
    const control_purpose purpose = purpose_of(&d->purpose, d->local);
    /* Not NULL, since leaving a communicator drops its dialers. */
    group *g = group_find(d->context, d->purpose.communicator);
    if (status != RING_OK) {
        give_failure(g, d->peer, &purpose, status == RING_ERR_ABORTED ? RING_ERR_PEER : status);
        return;
    }
    control_socket socket = socket_of(&d->handshake, fd);
    hand_over(g, d->peer, &purpose, &socket);
}

/* Fails the dials of @p g (NULL: of all communicators) to @p peer (-1: to all ranks). */
static void end_dials(membership *m, const group *g, int peer, ring_status status, const char *text)
{
    for (dialer *d = m->dialers; d != NULL; d = d->next) {
        if (d->ended || d->purpose.kind != HANDSHAKE_LINK || (peer >= 0 && d->peer != peer) ||
            (g != NULL && d->purpose.communicator != g->world.id))
            continue;
        const control_purpose purpose = purpose_of(&d->purpose, d->local);
        group *of = group_find(m, d->purpose.communicator);
        dialer_drop(d);
        if (of != NULL)
            give_failure(of, d->peer, &purpose, fail(status, "%s", text));
    }
}

void data_sockets_end(group *g)
{
    data_sockets_forget(g->member, g->world.id);
    while (g->opened != NULL)
        remove_latest_opened(g);
    end_dials(g->member, g, -1, control_verdict(&g->world), g->text);
}

static const char left[] = "it has left";

void data_sockets_left(membership *m, int rank)
{
    end_dials(m, NULL, rank, RING_ERR_PEER, left);
}

/* Locked. */
static ring_status dial(group *g, int peer, const control_purpose *purpose, double deadline)
{
    const dialer steady = {.purpose = {.communicator = g->world.id,
                                       .kind = HANDSHAKE_LINK,
                                       .traffic = purpose->traffic,
                                       .index = purpose->index,
                                       .transport = purpose->transport},
                           .patience = CONTROL_NEVER,
                           .most_pause = MOST_PAUSE,
                           .deadline = deadline,
                           .done = on_dialed};
    const int member_rank = group_member_rank(g, peer);
    if (!g->member->served)
        return fail(RING_ERR_USAGE, "this rank has left the communicator");
    if (is_opened(g, member_rank, purpose->traffic, purpose->index) ||
        dialer_of(g, member_rank, purpose->traffic, purpose->index) != NULL)
        return RING_OK;
    if (!group_is_decided(g) && !control_left(&g->world, peer))
        return peers_start_dialer_to(g->member, member_rank, purpose->local, &steady);
    give_failure(g, member_rank, purpose,
                 group_is_decided(g) ? fail(control_verdict(&g->world), "%s", g->text)
                                     : fail(RING_ERR_PEER, "%s", left));
    return RING_OK;
}

ring_status control_dial(control_world *world, int peer, const control_purpose *purpose,
                         double deadline)
{
    if (peer < 0 || peer >= world->size || peer == world->rank)
        return fail(RING_ERR_INTERNAL, "rank %d of %d cannot dial rank %d", world->rank,
                    world->size, peer);
    control_lock();
    const ring_status status = dial(group_of(world), peer, purpose, deadline);
    control_unlock();
    return status;
}
