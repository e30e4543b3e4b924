/* SPDX-License-Identifier: Apache-2.0
 * Keeps sorted tables of the peer's memory keys and of the keys that were announced to the peer,
 * and finds the keys of this end's registered memory. */
#include "verbs_keys.h"

#include "regions.h"

#include <stdlib.h>

/* ---- Tables ---------------------------------------------------------------------------------- */

/* @return the number of keys that begin at or before @p ref. Keys are sorted and do not overlap. */
static size_t keys_until(const verbs_keys *keys, uint64_t ref)
{
    size_t low = 0, high = keys->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (keys->all[middle].ref <= ref)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const verbs_key *verbs_key_find(const verbs_keys *keys, uint64_t ref, uint64_t bytes)
{
    const size_t place = keys_until(keys, ref);
    if (place == 0)
        return NULL;
    const verbs_key *key = &keys->all[place - 1]; /* begins at or before ref */
    return bytes <= key->bytes && ref - key->ref <= key->bytes - bytes ? key : NULL;
}

/* Moves all keys from index @p from on to index @p to, and adjusts the number of keys. */
static void move_keys(verbs_keys *keys, size_t to, size_t from)
{
    memmove(&keys->all[to], &keys->all[from], (keys->count - from) * sizeof *keys->all);
    keys->count = keys->count - from + to;
}

/* Drops the keys that overlap a new one: they belong to memory that no longer exists. */
static void drop_overlaps(verbs_keys *keys, const verbs_key *with)
{
    size_t first = keys_until(keys, with->ref), end = first;
    if (first > 0 && with->ref - keys->all[first - 1].ref < keys->all[first - 1].bytes)
        first--;
    while (end < keys->count && keys->all[end].ref - with->ref < with->bytes)
        end++;
    if (first < end)
        move_keys(keys, first, end);
}

bool verbs_key_put(verbs_keys *keys, const verbs_key *key)
{
    drop_overlaps(keys, key);
    if (keys->count == keys->room) {
        const size_t room = keys->room > 0 ? 2 * keys->room : 8;
        verbs_key *all = realloc(keys->all, room * sizeof *all);
        if (all == NULL)
            return false;
        keys->all = all;
        keys->room = room;
    }
    const size_t place = keys_until(keys, key->ref);
    move_keys(keys, place + 1, place);
    keys->all[place] = *key;
    return true;
}

bool verbs_learn_key(verbs_link *l, const void *data)
{
    verbs_key key;
    memcpy(&key, data, sizeof key);
    return key.bytes == 0 || verbs_key_put(&l->memory.known, &key);
}

/* ---- Memory of this end ---------------------------------------------------------------------- */

bool verbs_find_registration(verbs_link *l, const void *ptr, size_t bytes)
{
    return registration_find(ptr, bytes, &l->memory.user, &l->memory.found, &l->memory.found_seen);
}

bool verbs_local(verbs_link *l, verbs_operation *o, const void *data, size_t bytes)
{
    if (!verbs_find_registration(l, data, bytes))
        return false;
    o->local = (char *)(uintptr_t)data;
    for (int r = 0; r < l->rail.count; r++)
        o->local_key[r] = l->memory.found.local[l->rail.queue[r].port->device->index];
    return true;
}

verbs_key verbs_key_of(const verbs_link *l)
{
    verbs_key key = {.ref = (uint64_t)l->memory.found.region << REGION_OFFSET_BITS |
                            l->memory.found.offset,
                     .bytes = l->memory.found.bytes,
                     .address = (uintptr_t)l->memory.found.base};
    for (int r = 0; r < l->rail.count; r++)
        key.key[r] = l->memory.found.remote[l->rail.queue[r].port->device->index];
    return key;
}
