/* SPDX-License-Identifier: Apache-2.0
 *
 * pass: sends and receives shm's greeting over an AF_UNIX socket: a message of fixed size together
 * with two descriptors. Superfluous descriptors are closed; after a failure all are. */
#ifndef RING_SHM_PASS_H
#define RING_SHM_PASS_H

#include "base.h"

enum { SHM_PASS_FDS = 2 };

/** Sends the first message on a socket, which therefore has room for it. RING_IN_PROGRESS: this
 *  user has as many descriptors in flight as the kernel allows (RLIMIT_NOFILE); retry after peers
 *  have received some. */
ring_status shm_pass_send(int fd, const void *data, size_t bytes, const int fds[SHM_PASS_FDS]);

/** Receives such a message. RING_IN_PROGRESS: it has not arrived yet.
 *  @param[out] fds  owned by the caller; all -1 unless RING_OK. */
ring_status shm_pass_receive(int fd, void *data, size_t bytes, int fds[SHM_PASS_FDS]);

#endif
