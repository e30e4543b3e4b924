/* SPDX-License-Identifier: Apache-2.0
 * Put and get in place, and the memory keys for them. */
#include "verbs.h"

#include "regions.h"

#include <stdlib.h>

/* ---- Keys announced by the peer and by this end ------------------------------------------- */

static bool key_covers(const verbs_key *key, uint64_t ref, uint64_t bytes)
{
    return ref >= key->ref && bytes <= key->bytes && ref - key->ref <= key->bytes - bytes;
}

/* Keys do not overlap and are sorted by reference. @return how many begin at @p ref or before. */
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

static const verbs_key *key_find(const verbs_keys *keys, uint64_t ref, uint64_t bytes)
{
    const size_t place = keys_until(keys, ref);
    return place > 0 && key_covers(&keys->all[place - 1], ref, bytes) ? &keys->all[place - 1]
                                                                      : NULL;
}

static void move_keys(verbs_keys *keys, size_t to, size_t from)
{
    memmove(&keys->all[to], &keys->all[from], (keys->count - from) * sizeof *keys->all);
    keys->count = keys->count - from + to;
}

/* Drops the keys that overlap a new one: their memory has ended. */
static void drop_overlaps(verbs_keys *keys, const verbs_key *with)
{
    size_t first = keys_until(keys, with->ref), behind = first;
    if (first > 0 && with->ref - keys->all[first - 1].ref < keys->all[first - 1].bytes)
        first--;
    while (behind < keys->count && keys->all[behind].ref - with->ref < with->bytes)
        behind++;
    if (first < behind)
        move_keys(keys, first, behind);
}

static bool key_put(verbs_keys *keys, const verbs_key *key)
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
    return key.bytes == 0 || key_put(&l->known, &key);
}

/* ---- This end's memory -------------------------------------------------------------------- */

static bool find_registration(verbs_link *l, const void *ptr, size_t bytes)
{
    return registration_find(ptr, bytes, &l->user, &l->found, &l->found_seen);
}

bool verbs_local(verbs_link *l, verbs_operation *o, const void *data, size_t bytes)
{
    if (!find_registration(l, data, bytes))
        return false;
    o->local = (char *)(uintptr_t)data;
    for (int r = 0; r < l->rails; r++)
        o->local_key[r] = l->found.local[l->queue[r].port->device->index];
    return true;
}

static bool announce_key(verbs_link *l, const verbs_key *key)
{
    transport_frame frame = {.flags = VERBS_KEY, .message = l->head.frames_sent};
    memcpy(frame.data, key, sizeof *key);
    if (!verbs_has_room_for_two(l) || !key_put(&l->announced, key))
        return false;
    verbs_put_slot(l, verbs_next_operation(l), &frame, false);
    return true;
}

static verbs_key key_of(const verbs_link *l)
{
    verbs_key key = {.ref = (uint64_t)l->found.region << REGION_OFFSET_BITS | l->found.offset,
                     .bytes = l->found.bytes,
                     .address = (uintptr_t)l->found.base};
    for (int r = 0; r < l->rails; r++)
        key.key[r] = l->found.remote[l->queue[r].port->device->index];
    return key;
}

uint64_t verbs_ref(transport_link *head, const void *ptr, size_t bytes)
{
    verbs_link *l = (verbs_link *)head;
    if (l->state != RING_OK || !find_registration(l, ptr, bytes))
        return 0;
    const verbs_key key = key_of(l);
    const uint64_t ref = key.ref + (uint64_t)((const char *)ptr - l->found.base);
    const verbs_key *announced = key_find(&l->announced, ref, bytes);
    if ((announced == NULL || memcmp(announced, &key, sizeof key) != 0) && !announce_key(l, &key))
        return 0;
    return ref;
}

/* ---- Transfers ---------------------------------------------------------------------------- */

static ring_status find_remote(verbs_link *l, verbs_operation *o, uint64_t ref, size_t bytes)
{
    const verbs_key *key = key_find(&l->known, ref, bytes);
    if (key == NULL)
        return verbs_break(l, fail(RING_ERR_PEER, "it refers to memory outside of its regions"));
    o->remote = key->address + (ref - key->ref);
    memcpy(o->remote_key, key->key, sizeof o->remote_key);
    return RING_OK;
}

static ring_status describe(verbs_link *l, verbs_operation *o, const void *data, size_t bytes,
                            uint64_t ref)
{
    o->bytes = bytes;
    if (!verbs_local(l, o, data, bytes))
        return verbs_break(l, fail(RING_ERR_INTERNAL, "what is to be moved is not registered"));
    return find_remote(l, o, ref, bytes);
}

ring_status verbs_put(transport_link *head, const transport_frame *frame, const void *data,
                      uint64_t dst_ref)
{
    verbs_link *l = (verbs_link *)head;
    RING_TRY(verbs_state(l));
    if (frame->flags != (FRAME_LONG | FRAME_STORED))
        return verbs_break(l, fail(RING_ERR_INTERNAL, "a put needs a stored frame"));
    l->refused = !verbs_has_room(l, 0);
    if (l->refused)
        return verbs_state(l) == RING_OK ? RING_IN_PROGRESS : l->state;
    verbs_operation *o = verbs_next_operation(l);
    RING_TRY(describe(l, o, data, frame->ext.bytes, dst_ref));
    verbs_put_slot(l, o, frame, true);
    return RING_OK;
}

ring_status verbs_get(transport_link *head, void *dst, uint64_t ref, size_t bytes, ticket *over)
{
    verbs_link *l = (verbs_link *)head;
    RING_TRY(verbs_state(l));
    l->refused = !verbs_has_operation(l);
    if (l->refused)
        return RING_IN_PROGRESS;
    verbs_operation *o = verbs_next_operation(l);
    RING_TRY(describe(l, o, dst, bytes, ref));
    ticket_open(over);
    o->over = over;
    verbs_accept(l);
    return RING_OK;
}
