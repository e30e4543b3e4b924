/* SPDX-License-Identifier: Apache-2.0
 *
 * gids: which address of a port is used. RoCE v2 goes through routers and is what networks are
 * built for today, so it comes first, and an IPv4 address before others, which needs no more set
 * up than the interface itself. InfiniBand has one for each subnet.
 */
#ifndef RING_GIDS_H
#define RING_GIDS_H

#include "adapter.h"

/** Sets gid, gid_index and why of @p port. @return false: it has none. */
bool gid_choose(const ibverbs *api, adapter_port *port, int entries);
/** The same for an index that the user names. @return false, with fail() called: not there. */
bool gid_take(const adapter_port *port, int index, union ibv_gid *out);
/** As users know it: "::ffff:10.0.0.1", "fe80::1". */
void gid_write(const union ibv_gid *gid, char *out, size_t size);

#endif
