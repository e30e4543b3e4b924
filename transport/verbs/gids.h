/* SPDX-License-Identifier: Apache-2.0
 *
 * gids: chooses the GID, the network address, of a port from the port's GID table. RoCE v2 is
 * preferred, because it is routable and the usual configuration. Among GIDs of RoCE v2, IPv4
 * addresses are preferred, because they need no set-up beyond the interface itself.
 */
#ifndef RING_GIDS_H
#define RING_GIDS_H

#include "adapter.h"

/** Sets gid, gid_index and why of @p port. @param entries  size of the port's GID table.
 *  @return false if the port has no usable GID. */
bool gid_choose(const ibverbs *api, adapter_port *port, int entries);
/** Reads the table's entry @p index, which the user has set. @return false if the port has no such
 *  entry; then fail() was called with a text that names RING_IB_GID_INDEX. */
bool gid_take(const adapter_port *port, int index, union ibv_gid *out);
/** Formats a GID as an IPv6 address: "::ffff:10.0.0.1", "fe80::1". */
void gid_write(const union ibv_gid *gid, char *out, size_t size);

#endif
