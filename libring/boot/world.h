/* SPDX-License-Identifier: Apache-2.0
 * world: making a boot_world, and joining as rank 0 or another. */
#ifndef RING_BOOT_WORLD_H
#define RING_BOOT_WORLD_H

#include "star.h"

/** A world with this rank's card, not joined yet. */
ring_status world_new(int size, int rank, uint32_t transports, const char *launcher,
                      boot_world **out);
/** Rank 0 at @p listener (owned), whose address is p->at[0]. */
ring_status world_host(boot_world *world, const pass *p, int listener);
/** libsodium ready, settings in force. */
ring_status world_settings(settings *s);
/** A listener for a new id, at the chosen address or at @p otherwise. */
ring_status world_listen(const settings *s, boot_address otherwise, boot_address *at, int *fd);

#endif
