/* SPDX-License-Identifier: Apache-2.0
 *
 * peer credentials: checks which user is at the other end of a local connection. Where the job has
 * no secret, this check takes its place.
 */
#ifndef RING_CONTROL_PEER_CREDENTIALS_H
#define RING_CONTROL_PEER_CREDENTIALS_H

#include "base.h"

#include <stdio.h>

/** Opens the kernel's table of connections. It is opened in advance because strangers may occupy
 * all descriptors when a member has to be looked up. @return NULL if the table cannot be read. */
FILE *peer_table(void);
/** @return RING_OK if the process at the other end belongs to our user. AF_UNIX sockets are always
 *  checked, TCP over 127.0.0.1 only with a @p table. */
ring_status peer_check(int fd, FILE *table);

#endif
