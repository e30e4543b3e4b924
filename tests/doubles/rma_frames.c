/* SPDX-License-Identifier: Apache-2.0
 * Sends and receives frames through slots, and accesses the peer's regions. */
#include "rma.h"

#include "payload_ring.h"
#include <stddef.h>
#include <string.h>

/* ---- Room ------------------------------------------------------------------------- */

/* Transfers complete in any order; a frame counts when all earlier ones are complete. */
static void count_flushed(rma_link *l)
{
    while (l->slots_done < l->slots_sent) {
        const uint64_t slot = l->slots_done % RMA_SLOTS;
        if (ticket_status(&l->over[slot]) != RING_OK)
            return;
        l->flushed += l->is_frame[slot];
        l->slots_done++;
    }
}

/* The oldest may end between the count and the look: only its failure means that no more end. */
bool rma_is_sending(rma_link *l)
{
    const uint64_t before = l->slots_done;
    count_flushed(l);
    if (l->slots_done != before || l->slots_done == l->slots_sent)
        return l->slots_done != before;
    const ring_status oldest = ticket_status(&l->over[l->slots_done % RMA_SLOTS]);
    return oldest == RING_OK || oldest == RING_IN_PROGRESS;
}

static uint64_t bytes_freed(const rma_link *l)
{
    const uint64_t taken = atomic_load(&l->in->words[RMA_TAKEN]);
    return taken > 0 ? l->end[(taken - 1) % RMA_SLOTS] : 0;
}

static bool fits(rma_link *l, size_t bytes)
{
    count_flushed(l);
    const uint64_t taken = atomic_load(&l->in->words[RMA_TAKEN]);
    const uint64_t busy = taken < l->slots_done ? taken : l->slots_done;
    return l->slots_sent - busy < RMA_SLOTS &&
           payload_end(l->bytes_sent, bytes, RMA_PAYLOAD) - bytes_freed(l) <= RMA_PAYLOAD;
}

bool rma_fits(rma_link *l)
{
    return fits(l, TRANSPORT_SEGMENT);
}

/* ---- Sending ---------------------------------------------------------------------- */

static size_t slot_offset(uint64_t slot)
{
    return offsetof(rma_inbox, slot) + slot % RMA_SLOTS * sizeof(transport_frame);
}

/* @param t  what it brings before its header; the slot was found free. */
static void post(rma_link *l, const transport_frame *frame, nic_transfer *t, bool is_frame)
{
    const uint64_t slot = l->slots_sent % RMA_SLOTS;
    transport_frame header = *frame;
    header.stamp = (uint32_t)l->slots_sent + 1;
    t->kind = NIC_PUT;
    t->notice_at = (nic_place){.key = l->peer_key, .offset = slot_offset(l->slots_sent)};
    memcpy(t->notice, &header, sizeof header);
    t->over = &l->over[slot];
    l->is_frame[slot] = is_frame;
    l->end[slot] = l->bytes_sent;
    l->slots_sent++;
    nic_post(l->port, t);
}

static unsigned char *room(const rma_link *l)
{
    return &l->out->payload[payload_place(l->bytes_sent, RMA_PAYLOAD) % RMA_PAYLOAD];
}

void *rma_reserve(transport_link *head)
{
    rma_link *l = (rma_link *)head;
    if (rma_state(l) != RING_OK)
        return NULL;
    l->refused = !fits(l, TRANSPORT_SEGMENT);
    return l->refused ? NULL : room(l);
}

/* Where the adapter reads it: registered memory that the caller leaves alone, else a copy. */
static void *readable(const rma_link *l, const void *payload, size_t bytes, bool copy)
{
    if (!copy && region_key_of(region_ref(payload, bytes)).key != 0)
        return (void *)(uintptr_t)payload;
    if (payload != room(l))
        memcpy(room(l), payload, bytes);
    return room(l);
}

static ring_status count_frame(rma_link *l, const transport_frame *frame)
{
    l->head.frames_sent++;
    l->head.bytes_sent += transport_carried(frame);
    return RING_OK;
}

ring_status rma_send(transport_link *head, const transport_frame *frame, const void *payload,
                     bool copy)
{
    rma_link *l = (rma_link *)head;
    const size_t bytes = transport_behind(frame);
    RING_TRY(rma_state(l));
    if (!transport_is_sound(frame, FRAME_LONG | FRAME_REF))
        return rma_break(l, RING_ERR_INTERNAL, "this link cannot carry the frame to send");
    l->refused = !fits(l, bytes);
    if (l->refused)
        return RING_IN_PROGRESS;
    nic_transfer t = {.remote = {.key = l->peer_key}, .bytes = bytes};
    if (bytes > 0) {
        t.remote.offset = offsetof(rma_inbox, payload) +
                          payload_place(l->bytes_sent, RMA_PAYLOAD) % RMA_PAYLOAD;
        t.local = readable(l, payload, bytes, copy);
    }
    l->bytes_sent = payload_end(l->bytes_sent, bytes, RMA_PAYLOAD);
    post(l, frame, &t, true);
    return count_frame(l, frame);
}

uint64_t rma_flushed(const transport_link *head)
{
    rma_link *l = (rma_link *)(uintptr_t)head;
    count_flushed(l);
    return l->flushed;
}

uint64_t rma_released(const transport_link *head)
{
    return atomic_load(&((const rma_link *)head)->in->words[RMA_RELEASED]);
}

/* ---- Receiving -------------------------------------------------------------------- */

/* Announces to the peer the numbers of slots taken and messages released. */
static void tell(rma_link *l)
{
    if (l->state != RING_OK || atomic_exchange(&l->telling, true))
        return;
    nic_post(l->port,
             &(nic_transfer){.kind = NIC_PUT_WORDS,
                             .local = l->out->words,
                             .remote = {.key = l->peer_key, .offset = offsetof(rma_inbox, words)},
                             .bytes = sizeof l->out->words,
                             .taken = &l->telling});
}

void rma_release(transport_link *head, uint64_t messages)
{
    rma_link *l = (rma_link *)head;
    atomic_store(&l->out->words[RMA_RELEASED], messages);
    tell(l);
}

static const _Atomic uint32_t *turn_word(const rma_link *l)
{
    return (const _Atomic uint32_t *)(const void *)&l->in->slot[l->slots_taken % RMA_SLOTS].stamp;
}

static bool slot_is_here(const rma_link *l)
{
    return atomic_load(turn_word(l)) == (uint32_t)l->slots_taken + 1;
}

static void take_slot(rma_link *l, size_t bytes)
{
    l->bytes_taken = payload_end(l->bytes_taken, bytes, RMA_PAYLOAD);
    atomic_store(&l->out->words[RMA_TAKEN], ++l->slots_taken);
    tell(l);
}

/* @return false: no memory. */
static bool learn_key(rma_link *l)
{
    const region_key key = {.id = region_id_of(l->frame.ext.src_ref),
                            .key = l->frame.ext.count,
                            .bytes = l->frame.ext.bytes};
    return key_put(&l->known, &key);
}

static ring_status take_oldest(rma_link *l)
{
    while (slot_is_here(l)) {
        l->frame = l->in->slot[l->slots_taken % RMA_SLOTS];
        if (l->frame.flags != RMA_KEY) {
            l->peeked = transport_is_sound(&l->frame, FRAME_LONG | FRAME_REF | FRAME_STORED);
            return l->peeked ? RING_OK : rma_break(l, RING_ERR_PEER, "a damaged frame");
        }
        if (!learn_key(l))
            return rma_break(l, RING_ERR_MEMORY, "no memory for its keys");
        take_slot(l, 0);
    }
    if (l->gone)
        RING_TRY(rma_state(l)); /* frames of this end may still be in flight */
    return RING_IN_PROGRESS;
}

bool rma_has_frame(const rma_link *l)
{
    return !l->peeked && slot_is_here(l);
}

static const void *payload_of(const rma_link *l)
{
    if (l->frame.flags == 0)
        return l->frame.data;
    return transport_behind(&l->frame) > 0
               ? &l->in->payload[payload_place(l->bytes_taken, RMA_PAYLOAD) % RMA_PAYLOAD]
               : NULL;
}

ring_status rma_peek(transport_link *head, const transport_frame **frame, const void **payload)
{
    rma_link *l = (rma_link *)head;
    if (l->state != RING_OK)
        RING_TRY(rma_state(l));
    if (!l->peeked)
        RING_TRY(take_oldest(l));
    *frame = &l->frame;
    *payload = payload_of(l);
    return RING_OK;
}

ring_status rma_pull(transport_link *head, void *dst)
{
    rma_link *l = (rma_link *)head;
    RING_TRY(rma_state(l));
    if (transport_carried(&l->frame) > 0)
        memcpy(dst, payload_of(l), transport_carried(&l->frame));
    return RING_OK;
}

void rma_consume(transport_link *head)
{
    rma_link *l = (rma_link *)head;
    head->frames_received++;
    head->bytes_received += transport_carried(&l->frame);
    l->peeked = false;
    take_slot(l, transport_behind(&l->frame));
}

const _Atomic uint32_t *rma_news(const transport_link *head, uint32_t *value)
{
    const rma_link *l = (const rma_link *)head;
    *value = (uint32_t)l->slots_taken + 1;
    return turn_word(l);
}

/* ---- Regions ---------------------------------------------------------------------- */

static bool tell_key(rma_link *l, const region_key *key)
{
    const transport_frame frame = {.flags = RMA_KEY,
                                   .ext = {.bytes = key->bytes,
                                           .count = key->key,
                                           .src_ref = region_ref_to(key->id, 0)}};
    if (!fits(l, 0) || !key_put(&l->told, key))
        return false;
    post(l, &frame, &(nic_transfer){.remote = {.key = l->peer_key}}, false);
    return true;
}

uint64_t rma_ref(transport_link *head, const void *ptr, size_t bytes)
{
    rma_link *l = (rma_link *)head;
    const uint64_t ref = region_ref(ptr, bytes);
    if (ref == 0 || rma_state(l) != RING_OK)
        return 0;
    const region_key key = region_key_of(ref);
    const region_key *told = key_find(&l->told, key.id);
    if (key.key == 0 || ((told == NULL || told->key != key.key) && !tell_key(l, &key)))
        return 0;
    return ref;
}

/* Finds the memory of the peer to which a reference refers. */
static ring_status find_place(rma_link *l, uint64_t ref, size_t bytes, nic_place *at)
{
    const region_key *key = key_find(&l->known, region_id_of(ref));
    const uint64_t offset = region_offset_of(ref);
    if (key == NULL || bytes > key->bytes || offset > key->bytes - bytes)
        return rma_break(l, RING_ERR_PEER, "the peer referred to memory outside its regions");
    *at = (nic_place){.key = key->key, .offset = (size_t)offset};
    return RING_OK;
}

ring_status rma_put(transport_link *head, const transport_frame *frame, const void *data,
                    uint64_t dst_ref)
{
    rma_link *l = (rma_link *)head;
    nic_transfer t = {.local = (void *)(uintptr_t)data, .bytes = frame->ext.bytes};
    RING_TRY(rma_state(l));
    if (frame->flags != (FRAME_LONG | FRAME_STORED) || region_ref(data, t.bytes) == 0)
        return rma_break(l, RING_ERR_INTERNAL, "the source of a put is not registered memory");
    RING_TRY(find_place(l, dst_ref, t.bytes, &t.remote));
    l->refused = !fits(l, 0);
    if (l->refused)
        return RING_IN_PROGRESS;
    post(l, frame, &t, true);
    return count_frame(l, frame);
}

ring_status rma_get(transport_link *head, void *dst, uint64_t ref, size_t bytes, ticket *over)
{
    rma_link *l = (rma_link *)head;
    nic_transfer t = {.kind = NIC_GET, .local = dst, .bytes = bytes, .over = over};
    RING_TRY(rma_state(l));
    if (region_ref(dst, bytes) == 0)
        return rma_break(l, RING_ERR_INTERNAL, "the target of a get is not registered memory");
    RING_TRY(find_place(l, ref, bytes, &t.remote));
    nic_post(l->port, &t);
    return RING_OK;
}
