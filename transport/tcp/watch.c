/* SPDX-License-Identifier: Apache-2.0
 * Checks whether the peer can still be reached. A cut cable or a host that is down causes no end of
 * file. But the kernel of a live host acknowledges data, window probes to a full receiver, and
 * keepalive probes on an idle connection, even if its process is slow or stopped. So this end's
 * kernel sends probes, and a waiting caller checks how long the peer's kernel has not answered.
 *
 * TCP_USER_TIMEOUT is not an alternative: it ends connections to live readers that are slow. */
#include "tcp.h"
#include "tcp_failure.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define CHECKS 20.0 /* checks per peer_timeout; each is a system call                       */
#define PROBES 5    /* keepalive probes per peer_timeout, rounded to whole seconds          */
/* The kernel's maximum of unanswered probes, so that tcp_watch() breaks the link and not the
 * kernel. */
#define MOST_PROBES 127
/* The shortest timeout that is used, in seconds. A kernel ignores window probes that arrive within
 * half a second of its last answer, and the next probe may come after twice that time. */
#define LEAST_TIMEOUT 2.0

static bool set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

void tcp_watch_open(tcp_link *l, double peer_timeout)
{
    const double pause = peer_timeout / PROBES;
    const int seconds = pause < 1 ? 1 : pause < 3600 ? (int)pause : 3600;
    const bool probes = peer_timeout > 0 && set_option(l->fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
                        set_option(l->fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds) &&
                        set_option(l->fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds) &&
                        set_option(l->fd, IPPROTO_TCP, TCP_KEEPCNT, MOST_PROBES);
    const double limit = peer_timeout > LEAST_TIMEOUT ? peer_timeout : LEAST_TIMEOUT;
    l->peer_timeout = probes ? limit : 0; /* the options fail on a socket that is not TCP */
    l->looked = l->silent_since = clock_now();
}

/* @return the seconds for which the peer's kernel has acknowledged nothing although bytes or probes
 * were in flight. The age of the last acknowledgement is not enough, because it also grows while
 * nothing is in flight. */
static double silence(tcp_link *l, double now)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(l->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        (info.tcpi_unacked == 0 && info.tcpi_probes == 0))
        l->silent_since = now;
    const double in_flight = now - l->silent_since, last_ack = 1e-3 * info.tcpi_last_ack_recv;
    return in_flight < last_ack ? in_flight : last_ack;
}

/* While no caller waits, nothing is checked. After such a pause, silence is counted from the first
 * check of the new wait. */
ring_status tcp_watch(tcp_link *l)
{
    const double limit = l->peer_timeout, now = clock_now(), pause = now - l->looked;
    if (limit <= 0 || pause < limit / CHECKS)
        return RING_OK;
    l->looked = now;
    if (pause > limit / 2 + 0.5)
        l->silent_since = now;
    if (silence(l, now) <= limit)
        return RING_OK;
    return tcp_break(l, fail(RING_ERR_PEER,
                             "rank %d's host has acknowledged nothing over tcp for %g s "
                             "(RING_PEER_TIMEOUT); it is down or cut off from this host",
                             l->head.peer, limit));
}
