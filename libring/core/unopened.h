/* SPDX-License-Identifier: Apache-2.0
 * unopened: a channel before its socket is there. */
#ifndef RING_CORE_UNOPENED_H
#define RING_CORE_UNOPENED_H

#include "comm.h"

/** A link that accepts and delivers nothing. */
transport_link *unopened_link(void);
/** Asks for a socket for the channel; returns at once. */
ring_status unopened_dial(channel *c);

#endif
