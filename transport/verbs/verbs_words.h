/* SPDX-License-Identifier: Apache-2.0
 * verbs_words: exchanges the status words, by which each end tells the other how far it is. */
#ifndef RING_VERBS_WORDS_H
#define RING_VERBS_WORDS_H

#include "verbs.h"

/** Writes this end's words to the peer; if that is not possible now, they stay due. */
void verbs_announce(verbs_link *l);
/** @return true if the peer has received this end's words. */
bool verbs_words_arrived(verbs_link *l);
/** Reads the peer's words. */
void verbs_look_at_words(verbs_link *l);
/** @return the handle with which a request wakes the peer, if it sleeps and has not been woken
 *  since; otherwise 0. @param is_room  the request only announces room, which wakes the peer only
 *  if it waits for that. */
uint32_t verbs_sleeper(verbs_link *l, bool is_room);

#endif
