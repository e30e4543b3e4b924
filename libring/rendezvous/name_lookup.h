/* SPDX-License-Identifier: Apache-2.0
 *
 * name lookup: finds the addresses of the host name in MASTER_ADDR or RING_ADDR, with a deadline.
 * Error messages name the variable.
 */
#ifndef RING_RENDEZVOUS_NAME_LOOKUP_H
#define RING_RENDEZVOUS_NAME_LOOKUP_H

#include "address.h"

/** Finds up to @p most addresses of @p name, the value of @p variable. Addresses that other hosts
 * may reach come before loopback addresses, and then IPv4 before IPv6; "localhost" is 127.0.0.1.
 * Waits for a name server until @p deadline.
 *  @param[out] out    [most] the addresses, with the port @p port.
 *  @param[out] count  1 … @p most on success.
 *  @return RING_OK; RING_ERR_TIMEOUT; RING_ERR_CONFIG if there is no such name, or it is the
 *  wildcard address. */
ring_status name_lookup(const char *variable, const char *name, int port, double deadline,
                        net_address *out, size_t most, size_t *count);

#endif
