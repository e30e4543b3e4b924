/* SPDX-License-Identifier: Apache-2.0
 *
 * interface: choosing one of this host's addresses by the names of its interfaces: one rule for
 * links, ringinfo's report and ringrun's default.
 */
#ifndef RING_INTERFACE_H
#define RING_INTERFACE_H

#include <stdbool.h>
#include <sys/socket.h>

/** All but bridges and containers' ends, which other hosts cannot reach. */
#define INTERFACES_FOR_OTHERS "^docker,virbr,br-,veth,cni,flannel"

/** The address of the best interface that is up: the earlier word of @p list wins, then IPv4
 *  over IPv6, then the system's order.
 *  @param list  NCCL's syntax: "eth,ib" prefixes; "=eth0" exact names; "^docker" all but
 *               these, the loopback only if there is nothing else.
 *  @param[out] out  port 0. @return false if none matches. */
bool interface_choose(const char *list, struct sockaddr_storage *out);

#endif
