/* SPDX-License-Identifier: Apache-2.0
 *
 * pass: sends and receives shm's greeting over an AF_UNIX socket: a message of fixed size together
 * with two descriptors. The receiver closes any further descriptors, and all of them after a
 * failure. */
#ifndef RING_SHM_PASS_H
#define RING_SHM_PASS_H

#include "base.h"

enum { SHM_PASS_FDS = 2 };

/** Sends the first message on a socket, whose empty buffer has room for it.
 *  @return RING_IN_PROGRESS: this user has as many descriptors in flight as the kernel allows
 *          (RLIMIT_NOFILE); retry after peers have received some. */
ring_status shm_pass_send(int fd, const void *data, size_t bytes, const int fds[SHM_PASS_FDS]);

/** Receives a message that shm_pass_send() has sent.
 *  @param[out] fds  the received descriptors, which the caller owns; all -1 on failure.
 *  @return RING_IN_PROGRESS: the message has not arrived yet. */
ring_status shm_pass_receive(int fd, void *data, size_t bytes, int fds[SHM_PASS_FDS]);

#endif
