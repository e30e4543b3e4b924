/* SPDX-License-Identifier: Apache-2.0
 * Sends frames into the peer's slots, and reads received frames from the slots of this end. */
#include "ucx.h"
#include "ucx_link.h"
#include "ucx_pass.h"
#include "ucx_regions.h"
#include "ucx_state.h"

#include "payload_ring.h"

#include <string.h>

/* ---- Room ------------------------------------------------------------------------- */

/* A slot is free when the peer has consumed it and UCP has completed its send. */
bool ucx_fits(ucx_link *l, size_t bytes)
{
    const uint64_t taken = atomic_load_explicit(&l->peer.taken, memory_order_acquire);
    const uint64_t free_until = taken < l->send.slots_done ? taken : l->send.slots_done;
    const uint64_t freed = free_until > 0 ? l->out->end[(free_until - 1) % UCX_SLOTS] : 0;
    return l->send.slots - free_until < UCX_SLOTS &&
           payload_end(l->send.bytes, bytes, UCX_PAYLOAD) - freed <= UCX_PAYLOAD;
}

/* @return the place of the next payload in the outbox. */
static unsigned char *room(const ucx_link *l)
{
    return &l->out->payload[payload_place(l->send.bytes, UCX_PAYLOAD) % UCX_PAYLOAD];
}

/* ---- Sending ---------------------------------------------------------------------- */

ucx_posting *ucx_frame_posting(ucx_link *l, const transport_frame *frame)
{
    ucx_posting *p = ucx_posting_new(l);
    if (p == NULL)
        return NULL;
    p->label.number = l->send.slots;
    p->label.frame = *frame;
    if (frame->flags & FRAME_LONG) {
        p->label.dst_extent = ucx_extent_of(frame->ext.dst_ref);
        p->label.src_extent = frame->flags & FRAME_REF ? ucx_extent_of(frame->ext.src_ref) : 0;
    }
    return p;
}

/* Must be called before ucx_post(), because UCP may complete the send at once. */
void ucx_count_frame(ucx_link *l, const transport_frame *frame)
{
    l->out->end[l->send.slots % UCX_SLOTS] = l->send.bytes;
    l->out->done[l->send.slots % UCX_SLOTS] = false;
    l->send.slots++;
    l->head.frames_sent++;
    l->head.bytes_sent += transport_carried(frame);
}

/* Needs the lock. */
static ring_status carry(ucx_link *l, const transport_frame *frame, const void *payload)
{
    const size_t bytes = transport_behind(frame);
    unsigned char *to = room(l);
    ucx_posting *p = ucx_frame_posting(l, frame);
    if (p == NULL)
        return ucx_state(l);
    if (bytes > 0 && payload != to)
        memcpy(to, payload, bytes);
    p->label.place = bytes > 0 ? (uint64_t)(to - l->out->payload) : 0;
    l->send.bytes = payload_end(l->send.bytes, bytes, UCX_PAYLOAD);
    ucx_count_frame(l, frame);
    ucx_post(p, UCX_FRAME, to, bytes);
    ucx_stir();
    return RING_OK;
}

static ring_status try_send(ucx_link *l, const transport_frame *frame, const void *payload)
{
    const size_t bytes = transport_behind(frame);
    RING_TRY(ucx_state(l));
    if (!transport_is_sound(frame, FRAME_LONG | FRAME_REF))
        return ucx_break(l, RING_ERR_INTERNAL,
                         "a ucx link cannot send a frame with these flags or this length");
    if (!ucx_fits(l, bytes))
        ucx_pass();
    l->send.refused = !ucx_fits(l, bytes);
    return l->send.refused ? RING_IN_PROGRESS : carry(l, frame, payload);
}

/* Always copies the payload into the link's own memory, so it never borrows the caller's. */
ring_status ucx_send(transport_link *head, const transport_frame *frame, const void *payload,
                     bool copy)
{
    (void)copy;
    pthread_mutex_lock(&hub.lock);
    const ring_status status = try_send((ucx_link *)head, frame, payload);
    pthread_mutex_unlock(&hub.lock);
    return status;
}

void *ucx_reserve(transport_link *head)
{
    ucx_link *l = (ucx_link *)head;
    void *at = NULL;
    pthread_mutex_lock(&hub.lock);
    if (ucx_state(l) == RING_OK) {
        if (!ucx_fits(l, TRANSPORT_SEGMENT))
            ucx_pass();
        l->send.refused = !ucx_fits(l, TRANSPORT_SEGMENT);
        at = l->send.refused ? NULL : room(l);
    }
    pthread_mutex_unlock(&hub.lock);
    return at;
}

/* ---- Counts ----------------------------------------------------------------------- */

/* A frame counts when UCP has completed its send. If UCX still has to move the end of the frame,
 * the mover thread (ucx_pass.c) makes it do so. */
uint64_t ucx_flushed(const transport_link *head)
{
    const ucx_link *l = (const ucx_link *)head;
    pthread_mutex_lock(&hub.lock);
    const uint64_t flushed = l->send.slots_done;
    pthread_mutex_unlock(&hub.lock);
    return flushed;
}

void ucx_release(transport_link *head, uint64_t messages)
{
    ucx_link *l = (ucx_link *)head;
    pthread_mutex_lock(&hub.lock);
    l->recv.released = messages;
    ucx_announce(l, false);
    pthread_mutex_unlock(&hub.lock);
}

uint64_t ucx_released(const transport_link *head)
{
    ucx_link *l = (ucx_link *)(uintptr_t)head;
    pthread_mutex_lock(&hub.lock);
    if (l->state == RING_OK)
        ucx_pass();
    pthread_mutex_unlock(&hub.lock);
    return atomic_load_explicit(&l->peer.released, memory_order_acquire);
}

/* ---- Receiving -------------------------------------------------------------------- */

/* @return RING_OK if there is a frame, after a pass if necessary; RING_IN_PROGRESS if not. */
static ring_status look(ucx_link *l)
{
    pthread_mutex_lock(&hub.lock);
    ring_status status = ucx_state(l);
    if (status == RING_OK && !ucx_has_frame(l)) {
        ucx_pass();
        status = ucx_has_frame(l) ? RING_OK : ucx_state(l);
        if (status == RING_OK && !ucx_has_frame(l))
            status = RING_IN_PROGRESS;
    }
    pthread_mutex_unlock(&hub.lock);
    return status;
}

static const void *payload_of(const ucx_link *l)
{
    const transport_frame *frame = ucx_oldest(l);
    if (frame->flags == 0)
        return frame->data;
    return transport_behind(frame) > 0 ? l->in->payload + l->in->place[l->recv.slots % UCX_SLOTS]
                                       : NULL;
}

ring_status ucx_peek(transport_link *head, const transport_frame **frame, const void **payload)
{
    ucx_link *l = (ucx_link *)head;
    if (!l->recv.peeked || __atomic_load_n(&l->state, __ATOMIC_RELAXED) != RING_OK)
        RING_TRY(look(l));
    l->recv.peeked = true;
    *frame = ucx_oldest(l);
    *payload = payload_of(l);
    return RING_OK;
}

ring_status ucx_pull(transport_link *head, void *dst)
{
    const ucx_link *l = (const ucx_link *)head;
    const transport_frame *frame;
    const void *payload;
    RING_TRY(ucx_peek(head, &frame, &payload));
    if (transport_carried(frame) > 0)
        memcpy(dst, payload_of(l), transport_carried(frame));
    return RING_OK;
}

void ucx_consume(transport_link *head)
{
    ucx_link *l = (ucx_link *)head;
    const transport_frame *frame = ucx_oldest(l);
    pthread_mutex_lock(&hub.lock);
    head->frames_received++;
    head->bytes_received += transport_carried(frame);
    l->recv.bytes += transport_behind(frame);
    l->recv.slots++;
    l->recv.peeked = false;
    if (l->recv.slots - l->recv.announced_taken >= UCX_ANNOUNCE_SLOTS ||
        l->recv.bytes - l->recv.announced_bytes >= UCX_ANNOUNCE_BYTES)
        ucx_announce(l, false);
    pthread_mutex_unlock(&hub.lock);
}

/* There is no word to poll, because frames arrive only while a thread makes passes. */
const _Atomic uint32_t *ucx_news(const transport_link *head, uint32_t *value)
{
    (void)head, (void)value;
    return NULL;
}
