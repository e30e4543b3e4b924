/* SPDX-License-Identifier: Apache-2.0
 * tagged_link: tagged messages as frames. */
#ifndef RING_CORE_TAGGED_LINK_H
#define RING_CORE_TAGGED_LINK_H

#include "comm.h"

/** Serves the links of active channels. Fails the communicator if one of them fails. */
ring_status tagged_turn(ring_comm *comm, bool *moved);
/** Sends frames as far as the link takes them.
 *  @param own  the work that is being advanced: it is not to be held. */
ring_status tagged_flush(tagged_peer *p, const work *own, bool *moved);

#endif
