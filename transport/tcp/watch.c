/* SPDX-License-Identifier: Apache-2.0
 * Detecting an unreachable peer. No end of file reports a cut cable or a host that is down; but a
 * live host's kernel acknowledges, even for slow or stopped processes: data, window probes to a
 * full receiver, and keepalive probes when no data is under way. So the kernel probes, and a
 * waiting caller checks how long no answer has come.
 *
 * TCP_USER_TIMEOUT is no remedy: it ends connections to live readers that are slow. */
#include "tcp.h"
#include "tcp_failure.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define LOOKS 20.0     /* in one peer_timeout: a check is a system call */
#define QUESTIONS 5    /* keepalive probes, likewise; the kernel counts whole seconds */
#define MOST_ASKED 127 /* the kernel's most: it only probes, the check decides */
/* Seconds. A kernel leaves window probes unanswered that come within half a second of an answer,
 * and the next one may be twice as far. */
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
    l->peer_timeout = asks ? limit : 0; /* not on a socket that is not TCP */
    l->looked = l->silent_since = clock_now();
}

/* @return seconds for which no byte under way was acknowledged. An acknowledgement may be old
 * because no byte was under way before, so its age alone is not enough. */
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

/* Between two waits there are no checks, so silence counts from the first check of this one. */
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
