/* SPDX-License-Identifier: Apache-2.0
 * Descriptors travel with the first byte of the message; the rest is plain bytes. */
#include "pass.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

typedef union pass_control {
    char bytes[CMSG_SPACE(SHM_PASS_FDS * sizeof(int))];
    struct cmsghdr align;
} pass_control;

static bool try_again(void)
{
    return errno == EAGAIN || errno == EINTR;
}

ring_status shm_pass_send(int fd, const void *data, size_t bytes, const int fds[SHM_PASS_FDS],
                          double deadline)
{
    pass_control control = {.bytes = {0}};
    struct iovec piece = {.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(SHM_PASS_FDS * sizeof(int));
    memcpy(CMSG_DATA(head), fds, SHM_PASS_FDS * sizeof(int));
    ssize_t put;
    while ((put = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0) {
        if (!try_again())
            return fail(RING_ERR_PEER, "passing shared memory to the peer: %m");
        RING_TRY(fd_await(fd, POLLOUT, deadline));
    }
    return fd_write_all(fd, (const char *)data + put, bytes - (size_t)put, deadline);
}

/* @return how many descriptors came; the first ones go to @p fds, others are closed. */
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

static ring_status receive_first(int fd, struct msghdr *message, ssize_t *got, double deadline)
{
    while ((*got = recvmsg(fd, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0) {
        if (!try_again())
            return fail(RING_ERR_PEER, "receiving shared memory from the peer: %m");
        RING_TRY(fd_await(fd, POLLIN, deadline));
    }
    if (*got == 0)
        return fail(RING_ERR_PEER, "the peer closed the connection");
    return RING_OK;
}

static ring_status receive_all(int fd, void *data, size_t bytes, int fds[SHM_PASS_FDS],
                               double deadline)
{
    pass_control control = {.bytes = {0}};
    struct iovec piece = {.iov_base = data, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got;
    RING_TRY(receive_first(fd, &message, &got, deadline));
    const size_t count = collect(&message, fds);
    if (message.msg_flags & MSG_CTRUNC)
        return fail(RING_ERR_SYSTEM, "taking the peer's descriptors: this process may open no more "
                    "(ulimit -n)");
    if (count != SHM_PASS_FDS)
        return fail(RING_ERR_PEER, "the peer passed %zu descriptors instead of %d", count,
                    SHM_PASS_FDS);
    return fd_read_all(fd, (char *)data + got, bytes - (size_t)got, deadline);
}

ring_status shm_pass_receive(int fd, void *data, size_t bytes, int fds[SHM_PASS_FDS],
                             double deadline)
{
    for (int i = 0; i < SHM_PASS_FDS; i++)
        fds[i] = -1;
    const ring_status status = receive_all(fd, data, bytes, fds, deadline);
    for (int i = 0; i < SHM_PASS_FDS && status != RING_OK; i++)
        fd_close(&fds[i]);
    return status;
}
