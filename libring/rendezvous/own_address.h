/* SPDX-License-Identifier: Apache-2.0
 *
 * own address: chooses the address on which this host listens. A host may have several, and ranks
 * never listen on all of them.
 */
#ifndef RING_RENDEZVOUS_OWN_ADDRESS_H
#define RING_RENDEZVOUS_OWN_ADDRESS_H

#include "address.h"
#include "settings.h"

/** Gets the address of this host that RING_ADDR or RING_SOCKET_IFNAME asks for; out->length is 0 if
 *  neither is set. */
ring_status address_chosen(const settings *s, net_address *out);
/** @return an address of this host that others may reach: that of the first interface that is up
 * and neither the loopback nor a virtual bridge; 127.0.0.1 if there is none. */
net_address address_of_host(void);
/** Gets the address of this host, with port 0, from which packets to @p to leave. Sends nothing. */
ring_status address_towards(const net_address *to, net_address *own);

#endif
