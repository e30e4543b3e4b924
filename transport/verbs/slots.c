/* SPDX-License-Identifier: Apache-2.0
 * Sends frames by writing them into the peer's slots and payload buffer, and reads received frames
 * from the slots of this end. */
#include "verbs.h"

#include "payload_ring.h"
#include "slot_format.h"
#include "verbs_keys.h"
#include "verbs_state.h"
#include "verbs_words.h"

#include <stddef.h>

/* How many slots and payload bytes this end may consume before it announces them. With more, the
 * peer's window would shrink below its guaranteed size. */
enum { UNANNOUNCED_SLOTS = 512, UNANNOUNCED_BYTES = TRANSPORT_SEGMENT };

/* ---- Slots -------------------------------------------------------------------------------- */

/* Converts a slot to a frame. A slot has only the low 32 bits of the message's number; of the
 * possible numbers, the one nearest to the last message's number is correct. */
static transport_frame frame_of(const verbs_link *l, const verbs_slot *slot)
{
    const int32_t step = (int32_t)(slot->message - (uint32_t)l->recv.message);
    transport_frame frame = {.stamp = slot->stamp,
                             .flags = slot->flags,
                             .length = slot->length,
                             .call = slot->call,
                             .signature = slot->signature,
                             .message = l->recv.message + (uint64_t)(int64_t)step};
    memcpy(frame.data, slot->data, sizeof frame.data);
    return frame;
}

/* ---- Room --------------------------------------------------------------------------------- */

static uint64_t taken_by_peer(const verbs_link *l)
{
    const uint64_t taken = l->peer.words[WORD_TAKEN];
    return taken < l->send.slots ? taken : l->send.slots; /* the peer's value is not trusted */
}

static bool fits_now(verbs_link *l, size_t bytes)
{
    const uint64_t taken = taken_by_peer(l);
    const uint64_t freed = taken > 0 ? l->send.end[(taken - 1) % VERBS_SLOTS] : 0;
    return verbs_has_operation(l) && l->send.slots - taken < VERBS_SLOTS &&
           payload_end(l->send.bytes, bytes, VERBS_PAYLOAD) - freed <= VERBS_PAYLOAD;
}

bool verbs_has_room(verbs_link *l, size_t bytes)
{
    if (fits_now(l, bytes))
        return true;
    verbs_push(l);
    return l->state == RING_OK && fits_now(l, bytes);
}

/* A slot that carries a key must leave room for the frame that uses the key, because reserve() may
 * have promised that room to the caller. */
bool verbs_has_room_for_two(verbs_link *l)
{
    return verbs_has_room(l, 0) && l->send.slots + 1 - taken_by_peer(l) < VERBS_SLOTS &&
           l->send.accepted + 1 - l->send.done < VERBS_OPERATIONS;
}

bool verbs_fits(verbs_link *l)
{
    return verbs_has_room(l, TRANSPORT_SEGMENT);
}

/* ---- Sending ------------------------------------------------------------------------------ */

void verbs_put_slot(verbs_link *l, verbs_operation *o, const transport_frame *frame, bool is_frame)
{
    o->is_frame = is_frame;
    o->slot = l->send.slots;
    o->header = verbs_slot_of(frame, l->send.slots);
    l->send.end[l->send.slots % VERBS_SLOTS] = l->send.bytes;
    l->send.slots++;
    if (is_frame) {
        l->head.frames_sent++;
        l->head.bytes_sent += transport_carried(frame);
    }
    verbs_accept(l);
}

/* @return the place of the next payload in the outbox. */
static unsigned char *room(const verbs_link *l)
{
    return &l->out->payload[payload_place(l->send.bytes, VERBS_PAYLOAD) % VERBS_PAYLOAD];
}

void *verbs_reserve(transport_link *head)
{
    verbs_link *l = (verbs_link *)head;
    if (verbs_state(l) != RING_OK)
        return NULL;
    l->send.refused = !verbs_fits(l);
    return l->send.refused ? NULL : room(l);
}

/* Sets the source and target of the payload's write. The source is the caller's memory if that is
 * registered and may be borrowed; otherwise it is a copy in the outbox. */
static void place_payload(verbs_link *l, verbs_operation *o, const void *payload, size_t bytes,
                          bool copy)
{
    unsigned char *staged = room(l);
    o->bytes = bytes;
    o->remote = l->peer.inbox + offsetof(verbs_inbox, payload) +
                payload_place(l->send.bytes, VERBS_PAYLOAD) % VERBS_PAYLOAD;
    for (int r = 0; r < l->rail.count; r++)
        o->remote_key[r] = l->peer.key[r];
    if (!copy && payload != staged && verbs_local(l, o, payload, bytes))
        return;
    if (payload != staged)
        memcpy(staged, payload, bytes);
    o->local = (char *)staged;
    for (int r = 0; r < l->rail.count; r++)
        o->local_key[r] = l->rail.out_mr[r]->lkey;
}

ring_status verbs_send(transport_link *head, const transport_frame *frame, const void *payload,
                       bool copy)
{
    verbs_link *l = (verbs_link *)head;
    const size_t bytes = transport_behind(frame);
    RING_TRY(verbs_state(l));
    if (!transport_is_sound(frame, FRAME_LONG | FRAME_REF))
        return verbs_break(l, fail(RING_ERR_INTERNAL,
                                   "a verbs link cannot send a frame with flags 0x%x and a length "
                                   "of %zu",
                                   frame->flags, bytes));
    l->send.refused = !verbs_has_room(l, bytes);
    if (l->send.refused)
        return verbs_state(l) == RING_OK ? RING_IN_PROGRESS : l->state;
    verbs_operation *o = verbs_next_operation(l);
    if (bytes > 0)
        place_payload(l, o, payload, bytes, copy);
    l->send.bytes = payload_end(l->send.bytes, bytes, VERBS_PAYLOAD);
    verbs_put_slot(l, o, frame, true);
    return RING_OK;
}

uint64_t verbs_flushed(const transport_link *head)
{
    verbs_link *l = (verbs_link *)(uintptr_t)head;
    if (l->send.flushed < l->head.frames_sent)
        verbs_push(l);
    return l->send.flushed;
}

uint64_t verbs_released(const transport_link *head)
{
    verbs_link *l = (verbs_link *)(uintptr_t)head;
    verbs_look_at_words(l);
    return l->peer.words[WORD_RELEASED];
}

/* ---- Receiving ---------------------------------------------------------------------------- */

void verbs_release(transport_link *head, uint64_t messages)
{
    verbs_link *l = (verbs_link *)head;
    l->recv.words[WORD_RELEASED] = messages;
    verbs_look_at_words(l);
    verbs_announce(l);
}

/* Consumes the oldest slot, whose payload has @p bytes. Announces consumed slots when there are
 * many. */
static void take_slot(verbs_link *l, size_t bytes)
{
    l->recv.bytes_taken = payload_end(l->recv.bytes_taken, bytes, VERBS_PAYLOAD);
    l->recv.words[WORD_TAKEN]++;
    if (l->recv.words[WORD_TAKEN] - l->recv.announced_taken < UNANNOUNCED_SLOTS &&
        l->recv.bytes_taken - l->recv.announced_bytes < UNANNOUNCED_BYTES)
        return;
    verbs_look_at_words(l);
    verbs_announce(l);
}

/* Reads the oldest frame into l->recv.frame. Consumes slots with keys before it. */
static ring_status take_oldest(verbs_link *l)
{
    verbs_slot slot;
    while (verbs_read_slot(l, l->recv.words[WORD_TAKEN], &slot)) {
        if (slot.flags != VERBS_KEY) {
            l->recv.frame = frame_of(l, &slot);
            l->recv.message = l->recv.frame.message;
            l->recv.peeked = transport_is_sound(&l->recv.frame,
                                                FRAME_LONG | FRAME_REF | FRAME_STORED);
            return l->recv.peeked
                       ? RING_OK
                       : verbs_break(l, fail(RING_ERR_PEER,
                                             "the peer sent an invalid frame (flags 0x%x)",
                                             slot.flags));
        }
        if (!verbs_learn_key(l, slot.data))
            return verbs_break(l, fail(RING_ERR_MEMORY, "no memory for the peer's memory keys"));
        take_slot(l, 0);
    }
    return RING_IN_PROGRESS;
}

static const void *payload_of(const verbs_link *l)
{
    if (l->recv.frame.flags == 0)
        return l->recv.frame.data;
    return transport_behind(&l->recv.frame) > 0
               ? &l->in->payload[payload_place(l->recv.bytes_taken, VERBS_PAYLOAD) % VERBS_PAYLOAD]
               : NULL;
}

ring_status verbs_peek(transport_link *head, const transport_frame **frame, const void **payload)
{
    verbs_link *l = (verbs_link *)head;
    if (l->state != RING_OK)
        RING_TRY(verbs_state(l));
    if (!l->recv.peeked)
        RING_TRY(take_oldest(l));
    *frame = &l->recv.frame;
    *payload = payload_of(l);
    return RING_OK;
}

ring_status verbs_pull(transport_link *head, void *dst)
{
    verbs_link *l = (verbs_link *)head;
    RING_TRY(verbs_state(l));
    if (transport_carried(&l->recv.frame) > 0)
        memcpy(dst, payload_of(l), transport_carried(&l->recv.frame));
    return RING_OK;
}

void verbs_consume(transport_link *head)
{
    verbs_link *l = (verbs_link *)head;
    head->frames_received++;
    head->bytes_received += transport_carried(&l->recv.frame);
    l->recv.peeked = false;
    take_slot(l, transport_behind(&l->recv.frame));
}

const _Atomic uint32_t *verbs_news(const transport_link *head, uint32_t *value)
{
    const verbs_link *l = (const verbs_link *)head;
    *value = (uint32_t)l->recv.words[WORD_TAKEN] + 1;
    return verbs_stamp_word(l, l->recv.words[WORD_TAKEN]);
}
