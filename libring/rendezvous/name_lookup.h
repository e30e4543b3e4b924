/* SPDX-License-Identifier: Apache-2.0
 * name lookup: from a host's name to addresses, with a deadline. */
#ifndef RING_RENDEZVOUS_NAME_LOOKUP_H
#define RING_RENDEZVOUS_NAME_LOOKUP_H

#include "address.h"

/** All addresses of @p name, the value of @p variable: those that other hosts may reach before the
 *  loopback, then IPv4 before IPv6; "localhost" is 127.0.0.1. Refuses the address that stands for
 *  all of a host's. Waits for a name server until @p deadline.
 *  @param[out] count  1 … @p most on success. */
ring_status name_lookup(const char *variable, const char *name, int port, double deadline,
                        net_address *out, size_t most, size_t *count);

#endif
