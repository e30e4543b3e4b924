/* SPDX-License-Identifier: Apache-2.0
 *
 * pass: a message of fixed size and the two descriptors of shm's greeting, over an AF_UNIX socket.
 * Superfluous descriptors are closed, on failure all are. */
#ifndef RING_SHM_PASS_H
#define RING_SHM_PASS_H

#include "base.h"

enum { SHM_PASS_FDS = 2 };

/** The first message on a socket: there is room for it. RING_IN_PROGRESS: this user has as many
 *  descriptors under way as the kernel allows (RLIMIT_NOFILE), until peers take some. */
ring_status shm_pass_send(int fd, const void *data, size_t bytes, const int fds[SHM_PASS_FDS]);

/** RING_IN_PROGRESS: no message is here yet.
 *  @param[out] fds  the caller's from here; all -1 unless RING_OK. */
ring_status shm_pass_receive(int fd, void *data, size_t bytes, int fds[SHM_PASS_FDS]);

#endif
