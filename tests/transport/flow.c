/* SPDX-License-Identifier: Apache-2.0
 * Sends many frames: full links, the ownership of payloads, both directions at once. */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

enum { FULL_LIMIT = 1 << 20 /* more frames than any link may hold */ };

/* Sends until the link is full. @return the number of accepted frames. */
static uint64_t fill(transport_link *l, const void *payload, size_t bytes)
{
    uint64_t n = 0;
    for (;; n++) {
        const transport_frame frame = frame_make(n, bytes);
        const ring_status status = l->transport->send(l, &frame, payload, false);
        if (status == RING_IN_PROGRESS)
            return n;
        must_ok(status);
        must(n < FULL_LIMIT);
    }
}

static void drain(const ends *e, uint64_t frames, uint64_t pattern, size_t bytes)
{
    const void *payload;
    for (uint64_t n = 0; n < frames; n++) {
        frame_check(ends_receive(e->a, e->b, &payload), n, bytes);
        payload_check(payload, pattern, bytes);
        e->b->transport->consume(e->b);
    }
}

void behaviour_full_link_says_in_progress(void)
{
    static unsigned char payload[4096];
    const transport_frame *frame;
    const void *none;
    ends e = ends_open();
    payload_fill(payload, 7, sizeof payload);
    for (int round = 0; round < 3; round++) {
        ends_settle();
        const uint64_t taken = fill(e.a, payload, sizeof payload);
        must(taken >= 2);
        drain(&e, taken, 7, sizeof payload);
        must_be(e.b->transport->peek(e.b, &frame, &none), RING_IN_PROGRESS);
    }
    ends_close(&e);
}

void behaviour_reserve_is_stable(void)
{
    ends e = ends_open();
    const transport *t = e.a->transport;
    void *room = t->reserve(e.a);
    must(room != NULL && (uintptr_t)room % 64 == 0);
    must(t->reserve(e.a) == room);
    payload_fill(room, 0, TRANSPORT_SEGMENT);
    must_ok(t->progress(e.a));
    must(t->reserve(e.a) == room);
    payload_check(room, 0, TRANSPORT_SEGMENT);
    const transport_frame frame = frame_make(0, TRANSPORT_SEGMENT);
    must_ok(t->send(e.a, &frame, room, false));
    const void *payload;
    frame_check(ends_receive(e.a, e.b, &payload), 0, TRANSPORT_SEGMENT);
    payload_check(payload, 0, TRANSPORT_SEGMENT);
    ends_close(&e);
}

/* Sends as many frames as fit, then one for each consumed frame: so the same room is used many
 * times, between frames whose payload is borrowed. */
void behaviour_reserved_frames_travel(void)
{
    static unsigned char borrowed[TRANSPORT_SEGMENT];
    ends e = ends_open();
    const transport *t = e.a->transport;
    uint64_t sent = 0;
    payload_fill(borrowed, 5, sizeof borrowed);
    for (uint64_t received = 0; received < 500; received++) {
        void *room;
        if (sent == received)
            ends_settle();
        while (sent < received + 100 && (room = t->reserve(e.a)) != NULL) {
            const transport_frame frame = frame_make(sent, 40000 + sent);
            if (sent % 5 != 0)
                payload_fill(room, sent, frame.ext.bytes);
            if (t->send(e.a, &frame, sent % 5 == 0 ? borrowed : room, false) != RING_OK)
                break;
            sent++;
        }
        const void *payload;
        frame_check(ends_receive(e.a, e.b, &payload), received, 40000 + received);
        payload_check(payload, received % 5 == 0 ? 5 : received, 40000 + received);
        e.b->transport->consume(e.b);
        must_ok(t->progress(e.a));
    }
    ends_close(&e);
}

enum { OVERWRITE_SLOTS = 4 };

/* Sends frame @p n from a slot whose earlier frame is flushed. @return false if there is no such
 * slot. */
static bool send_from_slot(transport_link *l, uint64_t n)
{
    static unsigned char slots[OVERWRITE_SLOTS][TRANSPORT_SEGMENT];
    const transport_frame frame = frame_make(n, TRANSPORT_SEGMENT);
    if (n >= l->transport->flushed(l) + OVERWRITE_SLOTS)
        return false;
    payload_fill(slots[n % OVERWRITE_SLOTS], n, TRANSPORT_SEGMENT);
    return l->transport->send(l, &frame, slots[n % OVERWRITE_SLOTS], false) == RING_OK;
}

/* When a frame counts as flushed, its payload may be overwritten: here slots are reused while other
 * frames are in flight. */
void behaviour_flushed_counts(void)
{
    enum { FRAMES = 400 };
    ends e = ends_open();
    const transport *t = e.a->transport;
    uint64_t sent = 0, before = 0;
    for (uint64_t received = 0; received < FRAMES; received++) {
        if (sent == received)
            ends_settle();
        while (sent < FRAMES && sent < received + 100 && send_from_slot(e.a, sent))
            sent++;
        const uint64_t flushed = t->flushed(e.a);
        must(flushed >= before && flushed <= e.a->frames_sent);
        before = flushed;
        const void *got;
        frame_check(ends_receive(e.a, e.b, &got), received, TRANSPORT_SEGMENT);
        payload_check(got, received, TRANSPORT_SEGMENT);
        e.b->transport->consume(e.b);
        must_ok(t->progress(e.a));
    }
    end_flush(e.a);
    must(t->flushed(e.a) == FRAMES && e.a->frames_sent == FRAMES);
    ends_close(&e);
}

void behaviour_counters_tell_traffic(void)
{
    static unsigned char payload[1000];
    ends e = ends_open();
    const void *got;
    for (uint64_t n = 0; n < 10; n++) {
        transport_frame frame = n == 9 ? frame_make_short(n, 40) : frame_make(n, 100 * n);
        if (n % 2 != 0 && n != 9)
            frame.ext.bytes = 0;
        must_ok(e.a->transport->send(e.a, &frame, payload, false));
        ends_receive(e.a, e.b, &got);
        e.b->transport->consume(e.b);
    }
    const uint64_t carried = 100 * (0 + 2 + 4 + 6 + 8) + 40;
    must(e.a->frames_sent == 10 && e.a->bytes_sent == carried);
    must(e.b->frames_received == 10 && e.b->bytes_received == carried);
    must(e.a->frames_received == 0 && e.a->bytes_received == 0);
    must(e.b->frames_sent == 0 && e.b->bytes_sent == 0);
    ends_close(&e);
}

void behaviour_links_are_independent(void)
{
    static unsigned char payload[TRANSPORT_SEGMENT];
    payload_fill(payload, 3, sizeof payload);
    ends blocked = ends_open();
    ends open = ends_open();
    const uint64_t taken = fill(blocked.a, payload, sizeof payload);
    for (uint64_t n = 0; n < 100; n++) {
        const transport_frame frame = frame_make(n, 1000);
        const void *got;
        must_ok(open.a->transport->send(open.a, &frame, payload, false));
        frame_check(ends_receive(open.a, open.b, &got), n, 1000);
        open.b->transport->consume(open.b);
    }
    must(blocked.b->frames_received == 0);
    drain(&blocked, taken, 3, sizeof payload);
    ends_close(&blocked);
    ends_close(&open);
}

/* ---- Both directions at once ---- */

enum { FLOOD_FRAMES = 1500 };

/* Sends or receives whenever possible; neither side waits for the other to finish sending. */
static void flood(transport_link *l)
{
    static _Thread_local unsigned char payload[TRANSPORT_SEGMENT], pulled[TRANSPORT_SEGMENT];
    const transport *t = l->transport;
    const double give_up = clock_now() + PATIENCE;
    payload_fill(payload, 11, sizeof payload);
    uint64_t sent = 0, received = 0;
    unsigned turns = 0;
    while (sent < FLOOD_FRAMES || received < FLOOD_FRAMES) {
        must(clock_now() < give_up);
        const uint64_t before = sent + received;
        const transport_frame frame = frame_make(sent, sizeof payload), *got;
        const void *here;
        if (sent < FLOOD_FRAMES && t->send(l, &frame, payload, false) == RING_OK)
            sent++;
        if (t->peek(l, &got, &here) == RING_OK && t->pull(l, pulled) == RING_OK) {
            frame_check(got, received, sizeof pulled);
            if (received++ % 16 == 0)
                payload_check(pulled, 11, sizeof pulled);
            t->consume(l);
        }
        if (sent + received > before)
            turns = 0;
        else
            end_idle(l, sent < FLOOD_FRAMES, &turns);
    }
    end_flush(l);
}

void behaviour_bidirectional_flood(void)
{
    ends_run(flood, flood);
}

enum { RANDOM_FRAMES = 2000 };

/* @return a size for frame n, the same at both ends; some frames have no payload. */
static size_t random_bytes(uint64_t n)
{
    if (scramble(n) % 7 == 0)
        return 0;
    const uint64_t x = scramble(n * 2 + 1);
    switch (x % 5) {
    case 0:
        return 0;
    case 1:
        return (x >> 8) % 16;
    case 2:
        return (x >> 8) % 4096;
    case 3:
        return (x >> 8) % (TRANSPORT_SEGMENT + 1);
    default:
        return TRANSPORT_SEGMENT - (x >> 8) % 3;
    }
}

static transport_frame random_frame(uint64_t n)
{
    const size_t bytes = random_bytes(n);
    if (bytes <= TRANSPORT_INLINE && scramble(n + 9) % 2 == 0)
        return frame_make_short(n, bytes);
    return frame_make(n, bytes);
}

/* Sends from the link's room, in place, or with a copy that is then overwritten. */
static bool random_send(transport_link *l, uint64_t n)
{
    enum { PLACES = 32 };
    static _Thread_local unsigned char places[PLACES][TRANSPORT_SEGMENT];
    const transport_frame frame = random_frame(n);
    const bool reserves = scramble(n + 5) % 4 == 0, copies = scramble(n + 5) % 4 == 1;
    void *payload = reserves ? l->transport->reserve(l) : places[n % PLACES];
    if (payload == NULL || n >= l->transport->flushed(l) + PLACES)
        return false;
    payload_fill(payload, n, transport_behind(&frame));
    const ring_status status = l->transport->send(l, &frame, payload, copies);
    must(status == RING_OK || status == RING_IN_PROGRESS);
    if (status == RING_OK && copies)
        payload_fill(payload, ~n, transport_behind(&frame));
    return status == RING_OK;
}

static bool random_receive(transport_link *l, uint64_t n)
{
    static _Thread_local unsigned char pulled[TRANSPORT_SEGMENT];
    const transport_frame expected = random_frame(n), *frame;
    const size_t bytes = transport_carried(&expected);
    const void *payload;
    const ring_status status = l->transport->peek(l, &frame, &payload);
    must(status == RING_OK || status == RING_IN_PROGRESS);
    if (status == RING_IN_PROGRESS)
        return false;
    if (scramble(n + 3) % 2 == 0) {
        if (l->transport->pull(l, pulled) == RING_IN_PROGRESS)
            return false;
        payload = pulled;
    }
    if (bytes > 0 && payload == NULL)
        return false;
    frame_check(frame, n, random_bytes(n));
    must(frame->flags == expected.flags);
    payload_check(payload, n, bytes);
    l->transport->consume(l);
    return true;
}

static void random_exchange(transport_link *l)
{
    const double give_up = clock_now() + PATIENCE;
    uint64_t sent = 0, received = 0;
    unsigned turns = 0;
    while (sent < RANDOM_FRAMES || received < RANDOM_FRAMES) {
        must(clock_now() < give_up);
        const bool out = sent < RANDOM_FRAMES && random_send(l, sent);
        const bool in = received < RANDOM_FRAMES && random_receive(l, received);
        sent += out;
        received += in;
        turns = in || out ? 0 : turns;
        if (!in && !out)
            end_idle(l, sent < RANDOM_FRAMES, &turns);
    }
    end_flush(l);
    must(l->bytes_sent == l->bytes_received && l->frames_received == RANDOM_FRAMES);
}

void behaviour_random_traffic(void)
{
    ends_run(random_exchange, random_exchange);
}
