/* SPDX-License-Identifier: Apache-2.0
 * Lets callers sleep on a tcp link. A caller polls the link's descriptor for input only, so the
 * descriptor is an epoll that watches the socket for input and for output. It watches only for
 * events that the link can use now; otherwise a peer that has sent more frames would keep its
 * reader awake. No event is lost between arm() and poll(), because epoll is level-triggered. */
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
        (void)tcp_break(l, fail(RING_ERR_SYSTEM,
                                "changing the events that epoll watches for the tcp link to rank "
                                "%d: %m",
                                l->head.peer));
        return false;
    }
    l->events = events;
    return true;
}

bool tcp_arm(transport_link *link, bool wants_send)
{
    tcp_link *l = (tcp_link *)link;
    if (tcp_progress(link) != RING_OK || tcp_has_news(l))
        return false;
    /* Each change of `flushed` wakes the caller once. It goes back to sleep if the frame that it
     * waits for is not flushed yet. */
    if (wants_send) {
        const bool more = l->notified != l->flushed;
        l->notified = l->flushed;
        if (more || tcp_has_room(l))
            return false;
    }
    /* Queued bytes must be sent even if the caller waits only to receive. */
    const bool pending = l->flushed < l->head.frames_sent;
    const uint32_t in = tcp_is_served(l) ? 0 : EPOLLIN, out = pending ? EPOLLOUT : 0;
    return watch(l, in | out);
}

void tcp_disarm(transport_link *link)
{
    (void)link; /* level-triggered: there is nothing to drain */
}
