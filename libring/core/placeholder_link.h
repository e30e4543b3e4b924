/* SPDX-License-Identifier: Apache-2.0
 * unopened: a channel before its socket is there. */
#ifndef RING_CORE_PLACEHOLDER_LINK_H
#define RING_CORE_PLACEHOLDER_LINK_H

#include "comm.h"

/** A link that accepts and delivers nothing. */
transport_link *placeholder_link(void);
/** Asks for a socket for the channel; returns at once. */
ring_status channel_dial(channel *c);

#endif
