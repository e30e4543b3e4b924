/* SPDX-License-Identifier: Apache-2.0
 * verbs_keys: memory that adapters may touch, by its keys: the peer's, and this end's. */
#ifndef RING_VERBS_KEYS_H
#define RING_VERBS_KEYS_H

#include "verbs.h"

/** @return a key that covers all these bytes; NULL: there is none. */
const verbs_key *verbs_key_find(const verbs_keys *keys, uint64_t ref, uint64_t bytes);
/** Adds a key; what overlaps it goes. @return false: no memory. */
bool verbs_key_put(verbs_keys *keys, const verbs_key *key);
/** Fills in from where an adapter reads @p data. @return false: it lies in no registered memory. */
bool verbs_local(verbs_link *l, verbs_operation *o, const void *data, size_t bytes);
/** @return false: no memory. */
bool verbs_learn_key(verbs_link *l, const void *data);
/** Looks up @p ptr for `found`. @return false: it lies in no registered memory. */
bool verbs_find_registration(verbs_link *l, const void *ptr, size_t bytes);
/** The key of `found`. */
verbs_key verbs_key_of(const verbs_link *l);

#endif
