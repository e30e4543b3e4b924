/* SPDX-License-Identifier: Apache-2.0
 * verbs_words: how far each end is, told to the other. */
#ifndef RING_VERBS_WORDS_H
#define RING_VERBS_WORDS_H

#include "verbs.h"

/** Writes this end's words to the peer, or notes that they are due. */
void verbs_announce(verbs_link *l);
/** @return true if the peer has this end's words. */
bool verbs_words_arrived(verbs_link *l);
/** Reads the peer's words. */
void verbs_look_at_words(verbs_link *l);
/** @return the handle by which a request wakes the peer, if it sleeps and nobody has woken it
 * since; else 0. @param is_room  the request tells of room only. */
uint32_t verbs_sleeper(verbs_link *l, bool is_room);

#endif
