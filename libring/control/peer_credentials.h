/* SPDX-License-Identifier: Apache-2.0
 * peer credentials: the user at the other end of a local connection. */
#ifndef RING_CONTROL_PEER_CREDENTIALS_H
#define RING_CONTROL_PEER_CREDENTIALS_H

#include "base.h"

#include <stdio.h>

/** Opens the kernel's table of connections in advance: when a member has to be looked up, strangers
 *  may have taken all descriptors. NULL: it cannot be read. */
FILE *peer_table(void);
/** @return RING_OK if the process at the other end is of our user. AF_UNIX is always checked, TCP
 *  over 127.0.0.1 only with a @p table. */
ring_status peer_check(int fd, FILE *table);

#endif
