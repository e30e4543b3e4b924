/* SPDX-License-Identifier: Apache-2.0
 *
 * interface: chooses one of this host's addresses by the names of its interfaces. Links, ringinfo's
 * report and ringrun's default all use this rule.
 */
#ifndef RING_INTERFACE_H
#define RING_INTERFACE_H

#include <stdbool.h>
#include <sys/socket.h>

/** All interfaces but bridges and those of containers, which other hosts cannot reach. */
#define INTERFACES_FOR_OTHERS "^docker,virbr,br-,veth,cni,flannel"

/** Chooses the address of the best interface that is up. An earlier word of @p list wins, then IPv4
 *  over IPv6, then the system's order.
 *  @param list  in NCCL's syntax: "eth,ib" are prefixes, "=eth0" are exact names, and "^docker"
 *               matches all but these, the loopback only if nothing else does.
 *  @param[out] out  the address, with port 0.
 *  @return false if no interface matches. */
bool interface_choose(const char *list, struct sockaddr_storage *out);

#endif
