/* SPDX-License-Identifier: Apache-2.0
 *
 * gids: chooses a port's GID. RoCE v2 ranks first because it is routable and the usual
 * configuration; among those, IPv4 addresses rank first because they need no set-up beyond the
 * interface itself. InfiniBand has one GID per subnet.
 */
#ifndef RING_GIDS_H
#define RING_GIDS_H

#include "adapter.h"

/** Sets gid, gid_index and why of @p port. @return false if it has no usable GID. */
bool gid_choose(const ibverbs *api, adapter_port *port, int entries);
/** Reads the entry @p index, which the user has configured. @return false if the port has no such
 *  entry; then fail_text() names RING_IB_GID_INDEX. */
bool gid_take(const adapter_port *port, int index, union ibv_gid *out);
/** Writes a GID as an address: "::ffff:10.0.0.1", "fe80::1". */
void gid_write(const union ibv_gid *gid, char *out, size_t size);

#endif
