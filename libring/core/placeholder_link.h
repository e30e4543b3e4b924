/* SPDX-License-Identifier: Apache-2.0
 * placeholder_link: serves as the link of a channel until its socket arrives. */
#ifndef RING_CORE_PLACEHOLDER_LINK_H
#define RING_CORE_PLACEHOLDER_LINK_H

#include "comm.h"

/** @return the link that accepts and delivers nothing; there is one per process. */
transport_link *placeholder_link(void);
/** Requests a socket for the channel, which arrives later; returns at once. */
ring_status channel_dial(channel *c);

#endif
