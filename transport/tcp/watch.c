/* SPDX-License-Identifier: Apache-2.0
 * Checks whether the peer can still be reached. A cut cable or a host that is down causes no end of
 * file. But the kernel of a live host acknowledges data, window probes to a full receiver, and
 * keepalive probes when no data is in flight, even if the process is slow or stopped. So the kernel
 * probes, and a waiting caller checks how long the peer's kernel has not answered.
 *
 * TCP_USER_TIMEOUT is not an alternative: it ends connections to live readers that are slow. */
#include "tcp.h"
#include "tcp_failure.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define LOOKS 20.0     /* checks per peer_timeout; each is a system call */
#define QUESTIONS 5    /* keepalive probes per peer_timeout; the kernel counts whole seconds */
#define MOST_ASKED 127 /* the kernel's maximum: it only probes, and tcp_watch() decides */
/* Seconds. A kernel ignores window probes that arrive within half a second of its last answer, and
 * the next probe may come after twice that time. */
#define LEAST_TIMEOUT 2.0

static bool set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

void tcp_watch_open(tcp_link *l, double peer_timeout)
{
    const double pause = peer_timeout / QUESTIONS;
    const int seconds = pause < 1 ? 1 : pause < 3600 ? (int)pause : 3600;
    const bool asks = peer_timeout > 0 && set_option(l->fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
                      set_option(l->fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds) &&
                      set_option(l->fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds) &&
                      set_option(l->fd, IPPROTO_TCP, TCP_KEEPCNT, MOST_ASKED);
    const double limit = peer_timeout > LEAST_TIMEOUT ? peer_timeout : LEAST_TIMEOUT;
    l->peer_timeout = asks ? limit : 0; /* the options fail on a socket that is not TCP */
    l->looked = l->silent_since = clock_now();
}

/* @return the seconds for which no byte in flight has been acknowledged. The age of the last
 * acknowledgement alone is not enough: it may be old because nothing was in flight. */
static double silence(tcp_link *l, double now)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(l->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        (info.tcpi_unacked == 0 && info.tcpi_probes == 0))
        l->silent_since = now;
    const double asked = now - l->silent_since, heard = 1e-3 * info.tcpi_last_ack_recv;
    return asked < heard ? asked : heard;
}

/* Nothing is checked while no caller waits, so a new wait counts silence from its first check. */
ring_status tcp_watch(tcp_link *l)
{
    const double limit = l->peer_timeout, now = clock_now(), pause = now - l->looked;
    if (limit <= 0 || pause < limit / LOOKS)
        return RING_OK;
    l->looked = now;
    if (pause > limit / 2 + 0.5)
        l->silent_since = now;
    if (silence(l, now) <= limit)
        return RING_OK;
    return tcp_break(l, fail(RING_ERR_PEER,
                             "rank %d acknowledged nothing over tcp for %g s (RING_PEER_TIMEOUT); "
                             "its host is down or cut off from this one",
                             l->head.peer, limit));
}
