/* SPDX-License-Identifier: Apache-2.0
 *
 * interface: chooses one of this host's addresses by the names of its network interfaces. Links,
 * ringinfo's report and ringrun's default address all follow the same rule.
 */
#ifndef RING_INTERFACE_H
#define RING_INTERFACE_H

#include <stdbool.h>
#include <sys/socket.h>

/** Matches all interfaces except bridges and those of containers, which other hosts cannot reach.
 */
#define INTERFACES_FOR_OTHERS "^docker,virbr,br-,veth,cni,flannel"

/** Chooses the address of an interface that is up. If several match, the one that matches an
 * earlier word of @p list is chosen; among those, IPv4 before IPv6, then the first in the system's
 * order.
 *  @param list  names in NCCL's syntax: "eth,ib" lists prefixes of names, "=eth0,ib0" lists exact
 *               names, and "^docker,br-" matches all interfaces except these. In the last case the
 *               loopback is chosen only if no other interface matches.
 *  @param[out] out  the address, with port 0.
 *  @return false if no interface matches. */
bool interface_choose(const char *list, struct sockaddr_storage *out);

#endif
