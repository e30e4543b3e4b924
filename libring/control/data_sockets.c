/* SPDX-License-Identifier: Apache-2.0
 * Dialing and handing over; and the all-pairs start that is made of them. */
#include "data_sockets.h"

#include "rank_list.h"
#include "verdict.h"

#include <fcntl.h>

#define MOST_PAUSE 0.05

/* ---- Handing over ------------------------------------------------------------------ */

/* Links are handed on as plain blocking sockets. */
static void hand_over(membership *m, int peer, const control_purpose *purpose, ring_status status,
                      int fd)
{
    if (status == RING_OK)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    if (m->sink != NULL && m->sink(m->sink_context, peer, purpose, status, fd))
        return;
    log_debug("rank %d: nobody wants this socket (lane %u)", peer, purpose->lane);
    fd_close(&fd);
}

/* The lower rank of a pair does not dial. */
void data_sockets_admit(membership *m, const handshake_hello *hello, bool local, int fd)
{
    const control_purpose purpose = {.lane = hello->purpose.lane, .index = hello->purpose.index,
                                     .transport = hello->purpose.transport, .local = local};
    if (hello->rank > m->world.rank)
        hand_over(m, hello->rank, &purpose, RING_OK, fd);
    else
        fd_close(&fd);
}

void control_set_sink(control_world *world, control_sink *sink, void *context)
{
    membership *m = membership_of(world);
    control_lock();
    m->sink = sink;
    m->sink_context = context;
    control_unlock();
}

/* ---- Dialing ----------------------------------------------------------------------- */

static void on_dialed(dialer *d, ring_status status, int fd)
{
    const control_purpose purpose = {.lane = d->purpose.lane, .index = d->purpose.index,
                                     .transport = d->purpose.transport, .local = d->local};
    hand_over(d->context, d->peer, &purpose, status, fd);
}

/* Locked. */
static ring_status dial(membership *m, int peer, const control_purpose *purpose, double deadline)
{
    const dialer steady = {.purpose = {.kind = HANDSHAKE_LINK, .lane = purpose->lane,
                                       .index = purpose->index, .transport = purpose->transport},
                           .patience = CONTROL_NEVER, .most_pause = MOST_PAUSE,
                           .deadline = deadline, .done = on_dialed};
    return membership_dial_rank(m, peer, purpose->local, &steady);
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

/* ---- All pairs --------------------------------------------------------------------- */

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

/* Nobody dials before all have a sink. */
static ring_status connect_all(linking *l)
{
    control_world *w = &l->member->world;
    control_set_sink(w, take, l);
    RING_TRY(control_agree(w, RING_OK));
    control_lock();
    const ring_status status = link_all(l);
    control_unlock();
    if (status != RING_OK)
        control_announce(w, status);
    return status == RING_OK ? RING_OK : verdict_status(l->member);
}

ring_status control_connect(control_world *world, const control_route *routes, int lanes, int **fds)
{
    linking l = {.member = membership_of(world), .routes = routes, .lanes = lanes, .fds = fds,
                 .open = (size_t)lanes * (size_t)(world->size - 1)};
    for (int lane = 0; lane < lanes; lane++)
        for (int r = 0; r < world->size; r++)
            fds[lane][r] = -1;
    if (world->size == 1)
        return RING_OK;
    const ring_status status = connect_all(&l);
    control_lock();
    membership_drop_dialers(l.member, HANDSHAKE_LINK);
    control_unlock();
    control_set_sink(world, NULL, NULL);
    for (int lane = 0; status != RING_OK && lane < lanes; lane++)
        for (int r = 0; r < world->size; r++)
            fd_close(&fds[lane][r]);
    return status;
}
