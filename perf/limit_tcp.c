/* SPDX-License-Identifier: Apache-2.0
 *
 * limit_tcp: measures a TCP connection over 127.0.0.1. In a call, one thread sends the bytes and
 * the other receives them; the call ends when the last byte has arrived.
 */
#include "limit.h"
#include "stopwatch.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

typedef struct stream {
    limit_meeting meeting;
    int fds[2];
    char *buffers[2];
    double *times[2];
    size_t bytes;
    int iters, warmup;
    bool gate;
    atomic_bool broken;
} stream;

/* ---- The connection ---- */

static int listen_on_loopback(struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    *address = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)address, sizeof *address) == 0 &&
        listen(fd, 1) == 0 && getsockname(fd, (struct sockaddr *)address, &length) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* @param[out] fds  the sending and the receiving end; an end that could not be made is -1. */
static bool connect_pair(int fds[2])
{
    struct sockaddr_in address;
    const int listener = listen_on_loopback(&address), one = 1;
    fds[0] = fds[1] = -1;
    if (listener < 0)
        return false;
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fds[0] >= 0 && connect(fds[0], (struct sockaddr *)&address, sizeof address) == 0)
        fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
    return fds[1] >= 0 && setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0;
}

/* ---- The two threads ---- */

/* Sends (side 0) or receives (side 1) the bytes of one call. */
static bool move(stream *s, int side)
{
    for (size_t done = 0; done < s->bytes;) {
        char *at = s->buffers[side] + done;
        const ssize_t part = side == 0 ? send(s->fds[0], at, s->bytes - done, MSG_NOSIGNAL)
                                       : recv(s->fds[1], at, s->bytes - done, 0);
        if (part <= 0)
            return false;
        done += (size_t)part;
    }
    return true;
}

static void stream_side(int side, void *arg)
{
    stream *s = arg;
    for (int i = -s->warmup; i < s->iters && !atomic_load(&s->broken); i++) {
        limit_meet(&s->meeting, side);
        if (s->gate)
            stopwatch_gate();
        const double start = stopwatch_us();
        if (!move(s, side)) {
            atomic_store(&s->broken, true);
            shutdown(s->fds[side], SHUT_RDWR); /* so that the other side fails, too */
        }
        if (i >= 0)
            s->times[side][i] = stopwatch_us() - start;
        limit_meet(&s->meeting, side);
    }
}

double limit_tcp_stream(size_t bytes, int iters, int warmup, limit_cores cores)
{
    stream s = {.bytes = bytes,
                .iters = iters,
                .warmup = warmup,
                .gate = cores.first != cores.second};
    for (int i = 0; i < 2; i++) {
        s.buffers[i] = calloc(bytes ? bytes : 1, 1);
        s.times[i] = calloc((size_t)iters, sizeof(double));
    }
    const bool ready = connect_pair(s.fds) && s.buffers[0] && s.buffers[1] && s.times[0] &&
                       s.times[1];
    const bool ran = ready && limit_run_pair(stream_side, &s, cores) && !s.broken;
    for (int i = 0; ran && i < iters; i++) /* the slower side's time counts */
        if (s.times[0][i] > s.times[1][i])
            s.times[1][i] = s.times[0][i];
    const double us = ran ? stopwatch_median(s.times[1], (size_t)iters) : -1;
    if (!ready || s.broken)
        fprintf(stderr, "ringlimit: cannot send a TCP stream of %zu bytes over 127.0.0.1\n", bytes);
    for (int i = 0; i < 2; i++) {
        if (s.fds[i] >= 0)
            close(s.fds[i]);
        free(s.buffers[i]);
        free(s.times[i]);
    }
    return us;
}
