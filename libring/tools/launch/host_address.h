/* SPDX-License-Identifier: Apache-2.0
 * host_address: the address where ranks meet: names, addresses, ports. A name server that is
 * silent counts after 6 s as one that knows no such name. */
#ifndef LAUNCH_HOST_ADDRESS_H
#define LAUNCH_HOST_ADDRESS_H

#include "base.h"

/** @return true if @p host is the machine we are on. */
bool host_address_is_here(const char *host);
/** A port of 127.0.0.1 that is free now. */
ring_status host_address_free_port(int *port);
/** The address at which another host reaches this one: the one that faces @p host, else the first
 *  that is not the loopback. @return false if there is none. */
bool host_address_towards(const char *host, char *out, size_t size);
/** The address of this host that is not the loopback. @return false if there is none. */
bool host_address_public(char *out, size_t size);
/** The numeric address of @p host as seen from here. @return false if it has none but
 *  loopback ones. */
bool host_address_resolve(const char *host, char *out, size_t size);

#endif
