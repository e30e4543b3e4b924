/* SPDX-License-Identifier: Apache-2.0
 * Implements put and get between registered memory of the two ends, and announces the keys of this
 * end's memory to the peer before the first reference to it. */
#include "verbs.h"

#include "regions.h"
#include "verbs_keys.h"
#include "verbs_state.h"

#include <stdlib.h>

/* ---- This end's memory -------------------------------------------------------------------- */

uint64_t verbs_ref(transport_link *head, const void *ptr, size_t bytes)
{
    verbs_link *l = (verbs_link *)head;
    if (l->state != RING_OK || !verbs_find_registration(l, ptr, bytes))
        return 0;
    const verbs_key key = verbs_key_of(l);
    const uint64_t ref = key.ref + (uint64_t)((const char *)ptr - l->memory.found.base);
    const verbs_key *announced = verbs_key_find(&l->memory.announced, ref, bytes);
    if (announced != NULL && memcmp(announced, &key, sizeof key) == 0)
        return ref;
    transport_frame frame = {.flags = VERBS_KEY, .message = l->head.frames_sent};
    memcpy(frame.data, &key, sizeof key);
    if (!verbs_has_room_for_two(l) || !verbs_key_put(&l->memory.announced, &key))
        return 0;
    verbs_put_slot(l, verbs_next_operation(l), &frame, false);
    return ref;
}

/* ---- Transfers ---------------------------------------------------------------------------- */

/* Fills in the addresses and keys of a put or get. @param ref  reference to the peer's memory. */
static ring_status describe(verbs_link *l, verbs_operation *o, const void *data, size_t bytes,
                            uint64_t ref)
{
    o->bytes = bytes;
    if (!verbs_local(l, o, data, bytes))
        return verbs_break(l, fail(RING_ERR_INTERNAL, "this rank's memory for a put or get is not "
                                                      "registered"));
    const verbs_key *key = verbs_key_find(&l->memory.known, ref, bytes);
    if (key == NULL)
        return verbs_break(l,
                           fail(RING_ERR_PEER, "the peer referred to memory outside its regions"));
    o->remote = key->address + (ref - key->ref);
    memcpy(o->remote_key, key->key, sizeof o->remote_key);
    return RING_OK;
}

ring_status verbs_put(transport_link *head, const transport_frame *frame, const void *data,
                      uint64_t dst_ref)
{
    verbs_link *l = (verbs_link *)head;
    RING_TRY(verbs_state(l));
    if (frame->flags != (FRAME_LONG | FRAME_STORED))
        return verbs_break(l, fail(RING_ERR_INTERNAL,
                                   "a put needs a frame with the flags LONG and STORED, not 0x%x",
                                   frame->flags));
    l->send.refused = !verbs_has_room(l, 0);
    if (l->send.refused)
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
    l->send.refused = !verbs_has_operation(l);
    if (l->send.refused)
        return RING_IN_PROGRESS;
    verbs_operation *o = verbs_next_operation(l);
    RING_TRY(describe(l, o, dst, bytes, ref));
    ticket_open(over);
    o->over = over;
    verbs_accept(l);
    return RING_OK;
}
