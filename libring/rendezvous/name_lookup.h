/* SPDX-License-Identifier: Apache-2.0
 *
 * name lookup: finds the addresses of a host name, with a deadline. It serves the variables
 * MASTER_ADDR and RING_ADDR, whose names appear in its messages.
 */
#ifndef RING_RENDEZVOUS_NAME_LOOKUP_H
#define RING_RENDEZVOUS_NAME_LOOKUP_H

#include "address.h"

/** Gets all addresses of @p name, the value of @p variable. Addresses that other hosts may reach
 * come before the loopback, and IPv4 before IPv6; "localhost" is 127.0.0.1. Refuses the wildcard
 * address. Waits for a name server until @p deadline.
 *  @param[out] count  1 … @p most on success. */
ring_status name_lookup(const char *variable, const char *name, int port, double deadline,
                        net_address *out, size_t most, size_t *count);

#endif
