/* SPDX-License-Identifier: Apache-2.0
 * host_address: finds an address and a free port of this host, at which rank 0 of a job can listen.
 */
#ifndef LAUNCH_HOST_ADDRESS_H
#define LAUNCH_HOST_ADDRESS_H

#include "base.h"

#include <sys/socket.h>

enum { HOST_ADDRESS_MAX = 64 };

/** Finds a port of 127.0.0.1 that is free now. */
ring_status host_address_free_port(int *port);
/** Finds the address at which the host at @p address reaches this host: the one on the route to it;
 *  if that is not found, the same as host_address_public().
 *  @param address  numeric; NULL: unknown. @return false if there is no such address. */
bool host_address_towards(const char *address, char out[HOST_ADDRESS_MAX]);
/** Finds an address of this host for other hosts, not a loopback one. @return false if there is
 *  none. */
bool host_address_public(char out[HOST_ADDRESS_MAX]);
/** Converts an address to text; an IPv4 address that is mapped to IPv6 becomes "192.0.2.1".
 *  @return false for loopback addresses, for wildcards (0.0.0.0 and ::), and for families other
 *  than IPv4 and IPv6. */
bool host_address_text(const struct sockaddr *address, char out[HOST_ADDRESS_MAX]);

#endif
