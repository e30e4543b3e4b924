/* SPDX-License-Identifier: Apache-2.0
 *
 * own address: chooses the address of this host on which a rank listens. A host may have several
 * addresses, and a rank listens on one of them only.
 */
#ifndef RING_RENDEZVOUS_OWN_ADDRESS_H
#define RING_RENDEZVOUS_OWN_ADDRESS_H

#include "address.h"
#include "settings.h"

/** Gets the address of this host that RING_ADDR or RING_SOCKET_IFNAME chooses; out->length is 0 if
 *  neither is set. @return RING_OK, RING_ERR_CONFIG or RING_ERR_TIMEOUT. */
ring_status address_chosen(const settings *s, net_address *out);
/** @return the address of the first interface that is up and that other hosts may reach, so neither
 *  the loopback nor a virtual bridge; 127.0.0.1 if there is no such interface. */
net_address address_of_host(void);
/** Gets the address of this host, with port 0, that the kernel uses as the source of packets to
 *  @p to. Sends no packet. */
ring_status address_towards(const net_address *to, net_address *own);

#endif
