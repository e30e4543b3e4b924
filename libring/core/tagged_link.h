/* SPDX-License-Identifier: Apache-2.0
 * tagged_link: carries tagged messages over links, as the frames that tagged.h describes. */
#ifndef RING_CORE_TAGGED_LINK_H
#define RING_CORE_TAGGED_LINK_H

#include "comm.h"

/** Serves the links of all active tagged channels. Fails the communicator if one of them fails. */
ring_status tagged_turn(ring_comm *comm, bool *moved);
/** Sends grants, credits and messages as far as the link has room.
 *  @param own  the work that is being advanced, which must not be held; NULL: none. */
ring_status tagged_flush(tagged_peer *p, const work *own, bool *moved);

#endif
