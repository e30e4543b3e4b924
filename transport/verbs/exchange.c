/* SPDX-License-Identifier: Apache-2.0
 * Opens a link by an exchange over its socket. Each end sends three messages: its ports, the
 * addresses of its queue pairs, and a byte once its queue pairs are connected. */
#include "verbs.h"

#include "accelerator.h"
#include "regions.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { VERSION = 2 };

static const char magic[8] = "ringibv";

static ring_status send_bytes(verbs_link *l, const void *what, size_t bytes)
{
    if (send(l->socket.fd, what, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes)
        return RING_OK;
    return fail(RING_ERR_PEER, "sending an opening message to the peer: %m");
}

/* Receives the next message, of @p bytes, into l->opening.theirs. @return RING_OK when all of it
 * has arrived. */
static ring_status receive_bytes(verbs_link *l, size_t bytes)
{
    const ssize_t got = recv(l->socket.fd, (char *)&l->opening.theirs + l->opening.heard,
                             bytes - l->opening.heard, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return RING_IN_PROGRESS;
    if (got <= 0)
        return fail(RING_ERR_PEER, "the peer closed the connection before the link was open");
    l->opening.heard += (size_t)got;
    if (l->opening.heard < bytes)
        return RING_IN_PROGRESS;
    l->opening.heard = 0;
    return RING_OK;
}

/* ---- Choice of ports ---------------------------------------------------------------------- */

/* The nearest port is the one nearest to this process's accelerator, or to this thread if the
 * process has no accelerator with a known place. */
ring_status verbs_greet(verbs_link *l)
{
    const accelerator *of = regions_accelerator();
    const bool is_placed = of != NULL && of->share != NULL && of->place != NULL &&
                           of->place(of)->path[0] != '\0';
    l->opening.nearest = is_placed ? adapter_nearest_to(of->place(of), l->opening.ports,
                                                        l->opening.port_count)
                                   : adapter_nearest(l->opening.ports, l->opening.port_count);
    verbs_hello mine = {.version = VERSION,
                        .ports = (uint16_t)l->opening.port_count,
                        .nearest = (uint16_t)l->opening.nearest};
    memcpy(mine.magic, magic, sizeof magic);
    for (int i = 0; i < l->opening.port_count; i++)
        mine.adapter[i] = (uint8_t)l->opening.ports[i]->device->index;
    return send_bytes(l, &mine, sizeof mine);
}

/* @return the index of the port to fail over to, starting the search after @p first: a port that is
 * on another adapter at both ends, otherwise at one end, otherwise the next port. */
static int second_port(const verbs_link *l, const verbs_hello *theirs, int count, int first)
{
    int best = (first + 1) % count, most = 0;
    for (int i = 1; i < count; i++) {
        const int at = (first + i) % count;
        const int apart = (l->opening.ports[at]->device != l->opening.ports[first]->device) +
                          (theirs->adapter[at] != theirs->adapter[first]);
        if (apart > most) {
            best = at;
            most = apart;
        }
    }
    return best;
}

/* Both ends must choose the same ports. The index of the first rail's port is that of the lower
 * rank's nearest port, plus the channel's number, so that channels use different ports. */
static ring_status open_rails(verbs_link *l, const verbs_hello *theirs)
{
    const int count = l->opening.port_count < theirs->ports ? l->opening.port_count : theirs->ports;
    const int nearest = l->rank < l->head.peer ? l->opening.nearest : theirs->nearest;
    const int first = (nearest + l->channel) % count;
    const int chosen[VERBS_RAILS] = {first, second_port(l, theirs, count, first)};
    const int rails = count < VERBS_RAILS ? count : VERBS_RAILS;
    for (int r = 0; r < rails; r++) {
        const adapter_port *port = l->opening.ports[chosen[r]];
        RING_TRY(
            queue_pair_open(&l->rail.queue[r], port, &l->options, l->sleep.wake, &l->sleep.armed));
        l->rail.count = r + 1;
        l->memory.user.devices |= 1u << port->device->index;
    }
    l->memory.user.first = l->rail.queue[0].port->device->index;
    l->memory.user.relaxed = l->options.relaxed;
    l->memory.user.farthest = l->options.farthest;
    return RING_OK;
}

/* ---- Memory ------------------------------------------------------------------------------- */

static ring_status register_buffers(verbs_link *l)
{
    for (int r = 0; r < l->rail.count; r++) {
        const adapter_device *device = l->rail.queue[r].port->device;
        l->rail.in_mr[r] = registration_of_link(device, l->in, sizeof *l->in);
        if (l->rail.in_mr[r] != NULL)
            l->rail.out_mr[r] = registration_of_link(device, l->out, sizeof *l->out);
        if (l->rail.out_mr[r] == NULL)
            return fail(
                RING_ERR_MEMORY,
                "cannot register %zu KiB for a link with adapter %s: %m; raise the limit on locked "
                "memory (ulimit -l, LimitMEMLOCK=infinity)",
                (sizeof *l->in + sizeof *l->out) >> 10, device->name);
    }
    return RING_OK;
}

static ring_status send_address(verbs_link *l)
{
    verbs_address mine = {.inbox = (uintptr_t)l->in, .rails = (uint32_t)l->rail.count};
    for (int r = 0; r < l->rail.count; r++) {
        mine.key[r] = l->rail.in_mr[r]->rkey;
        mine.queue[r] = queue_pair_address_of(&l->rail.queue[r]);
        const adapter_device *device = l->rail.queue[r].port->device;
        struct epoll_event event = {.events = EPOLLIN};
        if (epoll_ctl(l->sleep.epoll, EPOLL_CTL_ADD, device->channel->fd, &event) != 0 &&
            errno != EEXIST) /* both rails may belong to one device */
            return fail(RING_ERR_SYSTEM, "adding the completion channel of adapter %s to epoll: %m",
                        device->name);
    }
    return send_bytes(l, &mine, sizeof mine);
}

/* ---- Phases ------------------------------------------------------------------------------- */

static ring_status receive_hello(verbs_link *l)
{
    const verbs_hello *theirs = &l->opening.theirs.hello;
    RING_TRY(receive_bytes(l, sizeof *theirs));
    if (memcmp(theirs->magic, magic, sizeof magic) != 0 || theirs->version != VERSION ||
        theirs->ports == 0 || theirs->ports > ADAPTER_MOST_PORTS ||
        theirs->nearest >= theirs->ports)
        return fail(RING_ERR_PEER, "the peer's first message is not a verbs greeting of this "
                                   "version; run the same libring on all ranks");
    RING_TRY(open_rails(l, theirs));
    RING_TRY(register_buffers(l));
    l->opening.phase = PHASE_ADDRESS;
    return send_address(l);
}

static ring_status receive_address(verbs_link *l)
{
    const verbs_address *theirs = &l->opening.theirs.address;
    RING_TRY(receive_bytes(l, sizeof *theirs));
    if (theirs->rails != (uint32_t)l->rail.count)
        return fail(RING_ERR_PEER, "the peer created %u queue pair%s, but this rank created %d",
                    theirs->rails, plural(theirs->rails), l->rail.count);
    l->peer.inbox = theirs->inbox;
    for (int r = 0; r < l->rail.count; r++) {
        l->peer.key[r] = theirs->key[r];
        l->peer.handle[r] = theirs->queue[r].handle;
        RING_TRY(queue_pair_connect(&l->rail.queue[r], &theirs->queue[r], &l->options));
    }
    l->opening.phase = PHASE_READY;
    return send_bytes(l, "R", 1);
}

ring_status verbs_continue_opening(verbs_link *l)
{
    if (l->opening.phase == PHASE_HELLO)
        RING_TRY(receive_hello(l));
    if (l->opening.phase == PHASE_ADDRESS)
        RING_TRY(receive_address(l));
    RING_TRY(receive_bytes(l, sizeof l->opening.theirs.ready));
    if (l->opening.theirs.ready != 'R')
        return fail(RING_ERR_PEER, "the peer's last opening message is 0x%02x instead of 'R'",
                    (unsigned char)l->opening.theirs.ready);
    return RING_OK;
}
