/* SPDX-License-Identifier: Apache-2.0
 * Tests that frames arrive as they were sent: in order, whole, with every header field. */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

static unsigned char sent_bytes[2 * TRANSPORT_SEGMENT], pulled_bytes[2 * TRANSPORT_SEGMENT];

static void send_numbered(transport_link *l, uint64_t n, void *payload, size_t bytes)
{
    const transport_frame frame = frame_make(n, bytes);
    payload_fill(payload, n, bytes);
    must_ok(l->transport->send(l, &frame, payload, false));
}

static void receive_numbered(const ends *e, uint64_t n, size_t bytes)
{
    const void *payload;
    frame_check(ends_receive(e->a, e->b, &payload), n, bytes);
    if (bytes > 0) {
        must((uintptr_t)payload % 64 == 0);
        payload_check(payload, n, bytes);
    }
    e->b->transport->consume(e->b);
}

/* Runs of 1, 2 and 3 frames, so that the queues' ends meet at every place. */
void behaviour_ordered_frames(void)
{
    static unsigned char payload[3][256];
    ends e = ends_open();
    uint64_t sent = 0, received = 0;
    while (received < 300) {
        for (uint64_t burst = 1 + sent % 3; burst > 0; burst--, sent++)
            send_numbered(e.a, sent, payload[burst - 1], sent * 37 % 256);
        for (; received < sent; received++)
            receive_numbered(&e, received, received * 37 % 256);
    }
    ends_close(&e);
}

/* Checks where each payload is read, in place or not. */
static void receive_short(const ends *e, uint64_t n, size_t bytes)
{
    const void *payload;
    const transport_frame *frame = ends_receive(e->a, e->b, &payload);
    frame_check(frame, n, bytes);
    must(payload == frame->data && (uintptr_t)payload % 8 == 0);
    memset(pulled_bytes, 0xa5, 2 * TRANSPORT_INLINE);
    must_ok(e->b->transport->pull(e->b, pulled_bytes));
    payload_check(pulled_bytes, n, bytes);
    must(pulled_bytes[bytes] == 0xa5);
    e->b->transport->consume(e->b);
}

void behaviour_short_frames(void)
{
    ends e = ends_open();
    for (uint64_t n = 0; n < 1000; n++) {
        const size_t bytes = n % (TRANSPORT_INLINE + 1);
        const transport_frame frame = frame_make_short(n, bytes);
        must_ok(e.a->transport->send(e.a, &frame, NULL, n % 2 == 0));
        receive_short(&e, n, bytes);
    }
    send_numbered(e.a, 1000, sent_bytes, 100);
    receive_numbered(&e, 1000, 100);
    ends_close(&e);
}

void behaviour_zero_bytes(void)
{
    ends e = ends_open();
    const void *payload;
    unsigned char untouched = 0xa5;
    const transport_frame empty = frame_make(0, 0);
    must_ok(e.a->transport->send(e.a, &empty, NULL, false));
    send_numbered(e.a, 1, sent_bytes, 5);
    frame_check(ends_receive(e.a, e.b, &payload), 0, 0);
    must_ok(e.b->transport->pull(e.b, &untouched));
    must(untouched == 0xa5);
    e.b->transport->consume(e.b);
    receive_numbered(&e, 1, 5);
    ends_close(&e);
}

void behaviour_full_segment(void)
{
    ends e = ends_open();
    for (uint64_t n = 0; n < 20; n++) {
        const size_t bytes = TRANSPORT_SEGMENT - (n % 2);
        send_numbered(e.a, n, sent_bytes, bytes);
        receive_numbered(&e, n, bytes);
    }
    ends_close(&e);
}

void behaviour_unaligned_payload(void)
{
    ends e = ends_open();
    for (uint64_t n = 0; n < 130; n++) {
        const size_t bytes = 1 + n * 977 % (TRANSPORT_SEGMENT - 1);
        send_numbered(e.a, n, sent_bytes + n, bytes);
        receive_numbered(&e, n, bytes);
    }
    ends_close(&e);
}

static void header_round(const ends *e, transport_frame frame)
{
    const transport_frame *got;
    const void *payload;
    must_ok(e->a->transport->send(e->a, &frame, sent_bytes, false));
    got = ends_receive(e->a, e->b, &payload);
    must((payload == NULL) == (transport_carried(&frame) == 0));
    frame.stamp = got->stamp;
    must(memcmp(got, &frame, sizeof frame) == 0);
    e->b->transport->consume(e->b);
}

void behaviour_header_travels_intact(void)
{
    ends e = ends_open();
    static const uint8_t flags[] = {0, FRAME_LONG, FRAME_LONG | FRAME_REF,
                                    FRAME_LONG | FRAME_STORED};
    const size_t kinds = can_map(e.a) ? sizeof flags : sizeof flags - 2;
    transport_frame ones;
    memset(&ones, 0xff, sizeof ones);
    for (size_t i = 0; i < kinds; i++) {
        transport_frame frame = frame_make(i, flags[i] == FRAME_LONG ? 64 : (size_t)1 << 40);
        frame.length = ones.length = TRANSPORT_INLINE;
        ones.ext.bytes = flags[i] == FRAME_LONG ? 1 : UINT64_MAX;
        ones.ext.src_ref = flags[i] == FRAME_LONG ? 0 : UINT64_MAX;
        ones.flags = frame.flags = flags[i];
        header_round(&e, frame);
        header_round(&e, ones);
    }
    ends_close(&e);
}

void behaviour_peek_is_idempotent(void)
{
    ends e = ends_open();
    send_numbered(e.a, 0, sent_bytes, 1000);
    const void *payload, *again;
    const transport_frame *frame = ends_receive(e.a, e.b, &payload), *same;
    send_numbered(e.a, 1, sent_bytes + 1024, 2000);
    for (int i = 0; i < 100; i++) {
        must_ok(e.a->transport->progress(e.a));
        must_ok(e.b->transport->progress(e.b));
        must_ok(e.b->transport->peek(e.b, &same, &again));
        must(same == frame && again == payload);
    }
    must(e.b->frames_received == 0);
    receive_numbered(&e, 0, 1000);
    receive_numbered(&e, 1, 2000);
    must_be(e.b->transport->peek(e.b, &same, &again), RING_IN_PROGRESS);
    ends_close(&e);
}

/* pull() writes the bytes at dst, and no bytes around them. */
static void pull_and_check(const ends *e, uint64_t n, size_t bytes)
{
    unsigned char *dst = pulled_bytes + 64 + n % 64;
    memset(pulled_bytes, 0xa5, sizeof pulled_bytes);
    end_pull(e->b, dst);
    payload_check(dst, n, bytes);
    must(dst[-1] == 0xa5 && dst[bytes] == 0xa5);
}

void behaviour_pull_equals_peek(void)
{
    ends e = ends_open();
    for (uint64_t n = 0; n < 200; n++) {
        const size_t bytes = 1 + scramble(n) % TRANSPORT_SEGMENT;
        send_numbered(e.a, n, sent_bytes, bytes);
        must_ok(e.a->transport->progress(e.a));
        const transport_frame *frame;
        const void *payload = NULL;
        if (n % 3 > 0)
            payload_check((ends_receive(e.a, e.b, &payload), payload), n, bytes);
        while (e.b->transport->peek(e.b, &frame, &payload) == RING_IN_PROGRESS)
            must_ok(e.a->transport->progress(e.a));
        if (n % 3 < 2)
            pull_and_check(&e, n, bytes);
        e.b->transport->consume(e.b);
    }
    ends_close(&e);
}

/* The engine drops frames of an older epoch without reading them. */
void behaviour_unread_payload_is_skipped(void)
{
    ends e = ends_open();
    const transport_frame *frame;
    const void *payload;
    for (uint64_t n = 0; n < 100; n += 2) {
        const size_t bytes = 1 + scramble(n) % TRANSPORT_SEGMENT;
        send_numbered(e.a, n, sent_bytes, bytes);
        while (e.b->transport->peek(e.b, &frame, &payload) == RING_IN_PROGRESS)
            must_ok(e.a->transport->progress(e.a));
        frame_check(frame, n, bytes);
        e.b->transport->consume(e.b);
        send_numbered(e.a, n + 1, sent_bytes + TRANSPORT_SEGMENT, 99);
        receive_numbered(&e, n + 1, 99);
    }
    ends_close(&e);
}
