/* SPDX-License-Identifier: Apache-2.0
 * Implements sending and receiving of the greeting with one sendmsg() and one recvmsg(): the kernel
 * delivers the message and its descriptors in one piece. */
#include "pass.h"

#include "lines_link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

typedef union pass_control {
    char bytes[CMSG_SPACE(SHM_PASS_FDS * sizeof(int))];
    struct cmsghdr align;
} pass_control;

ring_status shm_pass_send(int fd, const void *data, size_t bytes, const int fds[SHM_PASS_FDS])
{
    pass_control control = {.bytes = {0}};
    struct iovec piece = {.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(SHM_PASS_FDS * sizeof(int));
    memcpy(CMSG_DATA(head), fds, SHM_PASS_FDS * sizeof(int));
    const ssize_t put = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0 && (errno == ETOOMANYREFS || errno == EINTR))
        return RING_IN_PROGRESS;
    if (put < 0)
        return fail(errno == EPIPE || errno == ECONNRESET ? RING_ERR_PEER : RING_ERR_SYSTEM,
                    "passing shared memory to the peer: %m");
    return (size_t)put == bytes
               ? RING_OK
               : fail(RING_ERR_PEER, "the socket to the peer accepted only part of the greeting");
}

/* Stores the first SHM_PASS_FDS received descriptors in @p fds, and closes the others. @return the
 * number of received descriptors. */
static size_t collect(struct msghdr *message, int fds[SHM_PASS_FDS])
{
    size_t count = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        const size_t bytes = c->cmsg_len - CMSG_LEN(0);
        for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int), count++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
            if (count < SHM_PASS_FDS)
                fds[count] = fd;
            else
                fd_close(&fd);
        }
    }
    return count;
}

static ring_status check_parts(const struct msghdr *message, size_t count)
{
    if (message->msg_flags & MSG_CTRUNC)
        return fail(
            RING_ERR_SYSTEM,
            "no free descriptors for the peer's shared memory; raise the limit on open files "
            "(ulimit -n)");
    if (count != SHM_PASS_FDS)
        return fail(RING_ERR_PEER, "the peer passed %zu descriptor%s instead of %d", count,
                    plural(count), SHM_PASS_FDS);
    return RING_OK;
}

static ring_status receive(int fd, void *data, size_t bytes, int fds[SHM_PASS_FDS])
{
    pass_control control = {.bytes = {0}};
    struct iovec piece = {.iov_base = data, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    const ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const size_t count = got > 0 ? collect(&message, fds) : 0; /* even if the message is rejected */
    RING_TRY(lines_link_received(got, bytes));
    return check_parts(&message, count);
}

ring_status shm_pass_receive(int fd, void *data, size_t bytes, int fds[SHM_PASS_FDS])
{
    for (int i = 0; i < SHM_PASS_FDS; i++)
        fds[i] = -1;
    const ring_status status = receive(fd, data, bytes, fds);
    for (int i = 0; i < SHM_PASS_FDS && status != RING_OK; i++)
        fd_close(&fds[i]);
    return status;
}
