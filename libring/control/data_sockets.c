/* SPDX-License-Identifier: Apache-2.0
 * Dialing, keeping and handing over; and the all-pairs start that is made of them. */
#include "data_sockets.h"

#include "doors.h"
#include "rank_list.h"
#include "verdict.h"

#include <fcntl.h>
#include <stdlib.h>

#define MOST_PAUSE 0.05

/* ---- Handing over ------------------------------------------------------------------------------- */

/* Links are handed on as plain blocking sockets. */
static void hand_over(membership *m, int peer, const control_purpose *purpose, int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    if (m->sink(m->sink_context, peer, purpose, RING_OK, fd))
        return;
    log_debug("rank %d came unexpectedly (lane %u)", peer, purpose->lane);
    fd_close(&fd);
}

static void keep(membership *m, int peer, const control_purpose *purpose, int fd)
{
    kept_socket *k = malloc(sizeof *k);
    if (k == NULL) {
        fd_close(&fd);
        return;
    }
    *k = (kept_socket){.peer = peer, .fd = fd, .purpose = *purpose, .next = m->kept};
    m->kept = k;
}

void data_sockets_admit(membership *m, const handshake_hello *hello, bool local, int fd)
{
    const control_purpose purpose = {.lane = hello->purpose.lane, .index = hello->purpose.index,
                                     .transport = hello->purpose.transport, .local = local};
    if (hello->rank <= m->world.rank)
        fd_close(&fd); /* the lower rank of a pair does not dial */
    else if (m->sink != NULL)
        hand_over(m, hello->rank, &purpose, fd);
    else
        keep(m, hello->rank, &purpose, fd);
}

void data_sockets_free(membership *m)
{
    while (m->kept != NULL) {
        kept_socket *k = m->kept;
        m->kept = k->next;
        fd_close(&k->fd);
        free(k);
    }
}

static void set_sink(membership *m, control_sink *sink, void *context)
{
    m->sink = sink;
    m->sink_context = context;
    while (sink != NULL && m->kept != NULL) {
        kept_socket *k = m->kept;
        m->kept = k->next;
        hand_over(m, k->peer, &k->purpose, k->fd);
        free(k);
    }
}

void control_set_sink(control_world *world, control_sink *sink, void *context)
{
    control_lock();
    set_sink(membership_of(world), sink, context);
    control_unlock();
}

/* ---- Dialing -------------------------------------------------------------------------------------- */

static void on_dialed(dialer *d, ring_status status, int fd)
{
    membership *m = d->context;
    const control_purpose purpose = {.lane = d->purpose.lane, .index = d->purpose.index,
                                     .transport = d->purpose.transport, .local = d->local};
    if (status != RING_OK) {
        if (m->sink != NULL)
            (void)m->sink(m->sink_context, d->peer, &purpose, status, -1);
    } else if (m->sink != NULL) {
        hand_over(m, d->peer, &purpose, fd);
    } else {
        keep(m, d->peer, &purpose, fd);
    }
}

/* Locked. */
static ring_status dial(membership *m, int peer, const control_purpose *purpose, double deadline)
{
    dialer *d = doors_dialer(m, peer, purpose->local);
    if (d == NULL)
        return RING_ERR_INTERNAL;
    d->purpose = (handshake_purpose){.kind = HANDSHAKE_LINK, .lane = purpose->lane,
                                     .index = purpose->index, .transport = purpose->transport};
    d->patience = CONTROL_NEVER;
    d->most_pause = MOST_PAUSE;
    d->deadline = deadline;
    d->done = on_dialed;
    d->context = m;
    dialer_go(d);
    return RING_OK;
}

ring_status control_dial(control_world *world, int peer, const control_purpose *purpose,
                         double deadline)
{
    membership *m = membership_of(world);
    if (peer < 0 || peer >= world->rank)
        return fail(RING_ERR_INTERNAL, "rank %d dials rank %d: the higher rank of a pair has to",
                    world->rank, peer);
    control_lock();
    const ring_status status = !m->served || membership_is_decided(m)
                                   ? fail(RING_ERR_USAGE, "the communicator has ended")
                                   : dial(m, peer, purpose, deadline);
    control_unlock();
    return status;
}

/* ---- All pairs ------------------------------------------------------------------------------------ */

typedef struct linking {
    membership *member;
    const control_route *routes;
    int lanes;
    int **fds;
    size_t open;        /* sockets still to come */
    ring_status status; /* of a dial that failed, with its text */
    char text[256];
} linking;

static bool is_wanted(const linking *l, int peer, const control_purpose *purpose)
{
    const control_route *route = &l->routes[peer];
    return purpose->lane < l->lanes && purpose->index == 0 && purpose->local == route->local &&
           purpose->transport == route->transport && l->fds[purpose->lane][peer] < 0;
}

static bool take(void *context, int peer, const control_purpose *purpose, ring_status status,
                 int fd)
{
    linking *l = context;
    if (status == RING_OK && !is_wanted(l, peer, purpose))
        return false;
    if (status != RING_OK && l->status == RING_OK) {
        l->status = status;
        text_format(l->text, sizeof l->text, "%s", fail_text());
    } else if (status == RING_OK) {
        l->fds[purpose->lane][peer] = fd;
        l->open--;
    }
    if (l->open == 0 || status != RING_OK)
        pthread_cond_broadcast(&l->member->changed);
    return true;
}

static ring_status dial_all(linking *l)
{
    const control_world *w = &l->member->world;
    for (int peer = 0; peer < w->rank; peer++) {
        for (int lane = 0; lane < l->lanes && l->status == RING_OK; lane++) {
            const control_purpose purpose = {.lane = (uint16_t)lane,
                                             .transport = l->routes[peer].transport,
                                             .local = l->routes[peer].local};
            RING_TRY(dial(l->member, peer, &purpose, w->deadline));
        }
    }
    return RING_OK;
}

static bool is_missing(const void *context, int rank)
{
    const linking *l = context;
    for (int lane = 0; lane < l->lanes; lane++)
        if (rank != l->member->world.rank && l->fds[lane][rank] < 0)
            return true;
    return false;
}

static ring_status too_late(const linking *l)
{
    char ranks[200];
    rank_list_text(l->member->world.size, is_missing, l, ranks, sizeof ranks);
    return fail(RING_ERR_TIMEOUT, "no connection with rank %s in time (RING_INIT_TIMEOUT)%s%s; "
                "does a firewall block ports between the hosts?", ranks,
                l->text[0] != '\0' ? ": " : "", l->text);
}

/* Locked. */
static ring_status link_all(linking *l)
{
    membership *m = l->member;
    set_sink(m, take, l);
    RING_TRY(dial_all(l));
    while (l->open > 0 && l->status == RING_OK && !membership_is_decided(m))
        if (!control_wait(&m->changed, m->world.deadline))
            break;
    if (l->open == 0)
        return RING_OK;
    if (membership_is_decided(m))
        return verdict_status(m);
    return l->status == RING_OK || l->status == RING_ERR_TIMEOUT ? too_late(l)
                                                                 : fail(l->status, "%s", l->text);
}

static void clear(control_world *world, int lanes, int **fds)
{
    for (int lane = 0; lane < lanes; lane++)
        for (int r = 0; r < world->size; r++)
            fds[lane][r] = -1;
}

ring_status control_connect(control_world *world, const control_route *routes, int lanes, int **fds)
{
    linking l = {.member = membership_of(world), .routes = routes, .lanes = lanes, .fds = fds,
                 .open = (size_t)lanes * (size_t)(world->size - 1)};
    clear(world, lanes, fds);
    if (world->size == 1)
        return RING_OK;
    control_lock();
    const ring_status status = link_all(&l);
    set_sink(l.member, NULL, NULL);
    membership_drop_dialers(l.member, HANDSHAKE_LINK);
    control_unlock();
    if (status == RING_OK)
        return RING_OK;
    for (int lane = 0; lane < lanes; lane++)
        for (int r = 0; r < world->size; r++)
            fd_close(&fds[lane][r]);
    control_announce(world, status);
    return verdict_status(l.member);
}
