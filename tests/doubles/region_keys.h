/* SPDX-License-Identifier: Apache-2.0
 *
 * region_keys: keeps the adapter's keys of this process's regions, which are registered once per
 * process when a link first refers to them, and the keys that a peer has announced to a link. */
#ifndef TEST_DOUBLES_REGION_KEYS_H
#define TEST_DOUBLES_REGION_KEYS_H

#include "regions.h"

typedef struct region_key {
    uint16_t id;
    uint64_t key;
    uint64_t bytes;
} region_key;

/** @return the key of a region, 0: the adapter cannot reach its memory. */
region_key region_key_of(uint64_t ref);

/** Keys by region. */
typedef struct key_table {
    region_key *keys;
    size_t count;
} key_table;

/** @return the key of a region id, NULL: none. */
const region_key *key_find(const key_table *t, uint16_t id);
/** In place of the one with its id. @return false: no memory. */
bool key_put(key_table *t, const region_key *key);

#endif
