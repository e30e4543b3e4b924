/* SPDX-License-Identifier: Apache-2.0
 *
 * peer credentials: checks that the process at the other end of a local connection belongs to this
 * user. If a job has no secret, this check keeps other users out.
 */
#ifndef RING_CONTROL_PEER_CREDENTIALS_H
#define RING_CONTROL_PEER_CREDENTIALS_H

#include "base.h"

#include <stdio.h>

/** Opens the kernel's table of TCP connections. Callers open it in advance, because strangers may
 *  occupy all descriptors at the time when a peer must be checked.
 *  @return NULL if the table cannot be opened. */
FILE *peer_table(void);
/** @return RING_OK if the process at the other end belongs to this process's user; RING_ERR_AUTH if
 *  not. AF_UNIX sockets are always checked; TCP sockets, over 127.0.0.1, only if @p table is not
 *  NULL. */
ring_status peer_check(int fd, FILE *table);

#endif
