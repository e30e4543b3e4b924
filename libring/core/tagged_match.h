/* SPDX-License-Identifier: Apache-2.0
 * tagged_match: matches tagged messages with receives, and keeps lists of the unmatched ones. */
#ifndef RING_CORE_TAGGED_MATCH_H
#define RING_CORE_TAGGED_MATCH_H

#include "comm.h"

/** Matches a question, or a message whose first frame has arrived, with a waiting receive. Without
 *  such a receive, lists it for later ones. @return RING_ERR_MISMATCH if count or type differ. */
ring_status tagged_deliver(ring_comm *comm, tagged_message *m);
/** Holds the receiver of a message, if any, because the question or all bytes have arrived. */
void tagged_arrived(tagged_message *m);
/** Matches a receive with the first listed message that fits, or lists it as waiting.
 *  @return RING_ERR_MISMATCH if count or type differ. */
ring_status tagged_seek(work *w);
/** @return the tagged traffic with a rank; NULL if there was none so far. */
tagged_peer *tagged_peer_of(const ring_comm *comm, int rank);

#endif
