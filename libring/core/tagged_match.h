/* SPDX-License-Identifier: Apache-2.0
 * tagged_match: matches tagged messages with receives, and keeps those without a partner. */
#ifndef RING_CORE_TAGGED_MATCH_H
#define RING_CORE_TAGGED_MATCH_H

#include "comm.h"

/** Matches a question, or a message whose first frame arrived, with a receive, or sets it aside. */
ring_status tagged_deliver(ring_comm *comm, tagged_message *m);
/** Lets the receiver of a message continue, because its question or all of its bytes arrived. */
void tagged_arrived(tagged_message *m);
/** Matches a receive with a message that arrived, or adds it to the list of waiting receives. */
ring_status tagged_seek(work *w);
/** @return the tagged traffic with a rank; NULL if there was none so far. */
tagged_peer *tagged_peer_of(const ring_comm *comm, int rank);

#endif
