/* SPDX-License-Identifier: Apache-2.0
 *
 * gids: choice of a port's GID. RoCE v2 is routable and the usual configuration, so it ranks first,
 * and an IPv4 address before others, as it needs no set-up beyond the interface itself. InfiniBand
 * has one GID for each subnet.
 */
#ifndef RING_GIDS_H
#define RING_GIDS_H

#include "adapter.h"

/** Sets gid, gid_index and why of @p port. @return false: it has no usable GID. */
bool gid_choose(const ibverbs *api, adapter_port *port, int entries);
/** The same for the user's index. @return false, with fail() called: no such entry. */
bool gid_take(const adapter_port *port, int index, union ibv_gid *out);
/** Writes a GID as an address: "::ffff:10.0.0.1", "fe80::1". */
void gid_write(const union ibv_gid *gid, char *out, size_t size);

#endif
