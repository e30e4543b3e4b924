/* SPDX-License-Identifier: Apache-2.0
 * verbs_words: exchanges the status words, with which each end reports to the other what it has
 * consumed and released, that it sleeps, and which rails it has abandoned. */
#ifndef RING_VERBS_WORDS_H
#define RING_VERBS_WORDS_H

#include "verbs.h"

/** Writes this end's words to the peer. If that is not possible now, they stay due. */
void verbs_announce(verbs_link *l);
/** @return true if the peer has received this end's words. */
bool verbs_words_arrived(verbs_link *l);
/** Reads the peer's words. */
void verbs_look_at_words(verbs_link *l);
/** Decides whether the next request must wake the peer.
 *  @param is_room  the request only announces room, so it wakes only a peer that waits for room.
 *  @return the handle of the peer's sink if the peer sleeps and was not woken yet; otherwise 0. */
uint32_t verbs_sleeper(verbs_link *l, bool is_room);

#endif
