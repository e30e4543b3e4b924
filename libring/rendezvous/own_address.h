/* SPDX-License-Identifier: Apache-2.0
 * own address: this host's address to listen on. */
#ifndef RING_RENDEZVOUS_OWN_ADDRESS_H
#define RING_RENDEZVOUS_OWN_ADDRESS_H

#include "address.h"
#include "settings.h"

/** The address of this host that RING_ADDR or RING_SOCKET_IFNAME asks for; out->length is 0
 *  if neither is set. */
ring_status address_chosen(const settings *s, net_address *out);
/** An address of this host that others may reach: of the first interface that is up and not
 *  the loopback nor a virtual bridge; 127.0.0.1 without any. */
net_address address_of_host(void);
/** The address of this host, port 0, that packets to @p to leave from. Nothing is sent. */
ring_status address_towards(const net_address *to, net_address *own);

#endif
