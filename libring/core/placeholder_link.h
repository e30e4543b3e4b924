/* SPDX-License-Identifier: Apache-2.0
 * placeholder_link: is the link of a channel until the channel's socket arrives, and requests the
 * socket. */
#ifndef RING_CORE_PLACEHOLDER_LINK_H
#define RING_CORE_PLACEHOLDER_LINK_H

#include "comm.h"

/** @return the link that accepts and delivers nothing; there is one per process. */
transport_link *placeholder_link(void);
/** Requests a socket for the channel, and returns at once. The socket arrives in opening.c. */
ring_status channel_dial(channel *c);

#endif
