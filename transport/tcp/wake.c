/* SPDX-License-Identifier: Apache-2.0
 * Lets callers sleep on a tcp link. A caller polls its descriptor only for input, so it gets an
 * epoll descriptor that watches the socket. This watches only for events that the link can use now;
 * otherwise a peer that runs ahead would keep its reader awake. No event is lost between arm() and
 * poll(), because epoll is level-triggered. */
#include "tcp.h"
#include "tcp_failure.h"

#include <sys/epoll.h>

ring_status tcp_wake_open(tcp_link *l)
{
    l->wake = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (l->wake < 0 || epoll_ctl(l->wake, EPOLL_CTL_ADD, l->fd, &event) != 0)
        return fail(RING_ERR_SYSTEM,
                    "creating an epoll descriptor for the tcp link to rank %d: %m; see ulimit -n",
                    l->head.peer);
    l->events = EPOLLIN;
    return RING_OK;
}

int tcp_wake_fd(const transport_link *link)
{
    return ((const tcp_link *)link)->wake;
}

static bool watch(tcp_link *l, uint32_t events)
{
    if (events == l->events)
        return true;
    struct epoll_event event = {.events = events};
    if (epoll_ctl(l->wake, EPOLL_CTL_MOD, l->fd, &event) != 0) {
        (void)tcp_break(l, fail(RING_ERR_SYSTEM, "epoll for the tcp link to rank %d: %m",
                                l->head.peer));
        return false;
    }
    l->events = events;
    return true;
}

/* Every change of `flushed` wakes once: a caller that waits for that frame continues, one that
 * waits for a later frame goes back to sleep. */
static bool sent_news(tcp_link *l)
{
    const bool more = l->notified != l->flushed;
    l->notified = l->flushed;
    return more || tcp_has_room(l);
}

bool tcp_arm(transport_link *link, bool wants_send)
{
    tcp_link *l = (tcp_link *)link;
    if (tcp_progress(link) != RING_OK || tcp_has_news(l) || (wants_send && sent_news(l)))
        return false;
    /* Queued bytes must be sent even if the caller waits only to receive. */
    const bool pending = l->flushed < l->head.frames_sent;
    const uint32_t in = tcp_is_served(l) ? 0 : EPOLLIN, out = pending ? EPOLLOUT : 0;
    return watch(l, in | out);
}

void tcp_disarm(transport_link *link)
{
    (void)link; /* level-triggered: there is nothing to drain */
}
