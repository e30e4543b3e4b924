/* SPDX-License-Identifier: Apache-2.0
 * verbs_keys: finds the keys by which adapters access memory, the peer's and this end's. */
#ifndef RING_VERBS_KEYS_H
#define RING_VERBS_KEYS_H

#include "verbs.h"

/** @return a key that covers all these bytes; NULL if there is none. */
const verbs_key *verbs_key_find(const verbs_keys *keys, uint64_t ref, uint64_t bytes);
/** Adds a key, and drops those that overlap it. @return false if there is no memory. */
bool verbs_key_put(verbs_keys *keys, const verbs_key *key);
/** Sets the local address and keys of @p o to @p data. @return false if it is not registered. */
bool verbs_local(verbs_link *l, verbs_operation *o, const void *data, size_t bytes);
/** Adds a key that the peer has sent. @return false if there is no memory. */
bool verbs_learn_key(verbs_link *l, const void *data);
/** Sets l->memory.found to the registration of @p ptr. @return false if it is not registered. */
bool verbs_find_registration(verbs_link *l, const void *ptr, size_t bytes);
/** @return the key of l->memory.found, for the peer. */
verbs_key verbs_key_of(const verbs_link *l);

#endif
