/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes whole buffers on sockets, with a deadline, and sizes memory files. It never
 * changes a socket's blocking mode, because another process may have a copy of the socket, and
 * copies share the mode.
 */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

ring_status fd_await(int fd, short events, double deadline)
{
    struct pollfd entry = {.fd = fd, .events = events};
    const int ready = poll(&entry, 1, clock_ms_until(deadline, 1000));
    if (ready < 0 && errno != EINTR)
        return fail(RING_ERR_SYSTEM, "waiting for a socket (poll): %m");
    if (ready <= 0 && clock_now() >= deadline)
        return fail(RING_ERR_TIMEOUT, "no answer from the peer before the deadline");
    return RING_OK;
}

ring_status fd_read_all(int fd, void *data, size_t bytes, double deadline)
{
    char *at = data;
    while (bytes > 0) {
        const ssize_t got = recv(fd, at, bytes, MSG_DONTWAIT);
        if (got == 0)
            return fail(RING_ERR_PEER, "the peer closed the connection");
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return fail(RING_ERR_PEER, "receiving from the peer: %m");
        if (got < 0) {
            RING_TRY(fd_await(fd, POLLIN, deadline));
            continue;
        }
        at += got;
        bytes -= (size_t)got;
    }
    return RING_OK;
}

ring_status fd_write_all(int fd, const void *data, size_t bytes, double deadline)
{
    const char *at = data;
    while (bytes > 0) {
        const ssize_t put = send(fd, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno != EAGAIN && errno != EINTR)
            return fail(RING_ERR_PEER, "sending to the peer: %m");
        if (put < 0) {
            RING_TRY(fd_await(fd, POLLOUT, deadline));
            continue;
        }
        at += put;
        bytes -= (size_t)put;
    }
    return RING_OK;
}

/* Checks the limit on file sizes first, since ftruncate() beyond it raises SIGXFSZ. */
ring_status fd_size_and_seal(int fd, size_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
        return fail(RING_ERR_MEMORY,
                    "%zu KiB of shared memory exceed the limit on file sizes; raise it (ulimit -f)",
                    bytes >> 10);
    if (ftruncate(fd, (off_t)bytes) != 0)
        return fail(RING_ERR_SYSTEM, "sizing shared memory: %m");
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return fail(RING_ERR_SYSTEM, "sealing shared memory: %m");
    return RING_OK;
}
