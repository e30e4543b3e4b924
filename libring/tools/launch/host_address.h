/* SPDX-License-Identifier: Apache-2.0
 * host_address finds the address where the ranks of a job meet, and a free port for it. */
#ifndef LAUNCH_HOST_ADDRESS_H
#define LAUNCH_HOST_ADDRESS_H

#include "base.h"

#include <sys/socket.h>

enum { HOST_ADDRESS_MAX = 64 };

/** A port of 127.0.0.1 that is free now. */
ring_status host_address_free_port(int *port);
/** The address at which another host reaches this one: the one that faces @p address (numeric;
 * NULL: not known), else the first that is not the loopback. @return false if there is none. */
bool host_address_towards(const char *address, char out[HOST_ADDRESS_MAX]);
/** The address of this host that is not the loopback. @return false if there is none. */
bool host_address_public(char out[HOST_ADDRESS_MAX]);
/** An address as text, one of IPv4 in the form of IPv4. @return false for a loopback one, for one
 *  that stands for all of a host's own, and for another family than IPv4 and IPv6. */
bool host_address_text(const struct sockaddr *address, char out[HOST_ADDRESS_MAX]);

#endif
