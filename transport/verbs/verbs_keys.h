/* SPDX-License-Identifier: Apache-2.0
 * verbs_keys: finds the keys with which adapters access registered memory, of this end and of the
 * peer. */
#ifndef RING_VERBS_KEYS_H
#define RING_VERBS_KEYS_H

#include "verbs.h"

/** @return the key of an allocation that contains all @p bytes at reference @p ref; NULL if no
 *  allocation does. */
const verbs_key *verbs_key_find(const verbs_keys *keys, uint64_t ref, uint64_t bytes);
/** Adds a key, and drops all keys that overlap it. @return false if there is no memory. */
bool verbs_key_put(verbs_keys *keys, const verbs_key *key);
/** Sets the local address and keys of @p o to those of @p data. @return false if @p data is not
 *  registered and cannot be. */
bool verbs_local(verbs_link *l, verbs_operation *o, const void *data, size_t bytes);
/** Adds the key in @p data, the content of a slot from the peer. @return false if there is no
 *  memory. */
bool verbs_learn_key(verbs_link *l, const void *data);
/** Sets l->memory.found to the registration of @p bytes at @p ptr, which it makes if necessary.
 *  @return false if the memory is not registered and cannot be. */
bool verbs_find_registration(verbs_link *l, const void *ptr, size_t bytes);
/** @return the key of l->memory.found, for the peer. */
verbs_key verbs_key_of(const verbs_link *l);

#endif
