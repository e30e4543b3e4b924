/* SPDX-License-Identifier: Apache-2.0
 * tagged_match: tagged messages meet receives. */
#ifndef RING_CORE_TAGGED_MATCH_H
#define RING_CORE_TAGGED_MATCH_H

#include "comm.h"

/** Matches a message that begins to come, or a question, with a receive, or sets it aside. */
ring_status tagged_deliver(ring_comm *comm, tagged_message *m);
/** The message is complete, or its question is here: its receiver may go on. */
void tagged_arrived(tagged_message *m);
/** Matches a receive with a message that has come, or lists it among those that wait. */
ring_status tagged_seek(work *w);
/** @return the traffic with a rank; NULL: none so far. */
tagged_peer *tagged_peer_of(const ring_comm *comm, int rank);

#endif
