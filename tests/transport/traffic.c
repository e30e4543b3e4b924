/* SPDX-License-Identifier: Apache-2.0
 * Makes frames with known contents, and waits for them. */
#include "traffic.h"

#include "nic.h"

#include <poll.h>
#include <sched.h>
#include <string.h>

/* ---- Frames ---- */

uint64_t scramble(uint64_t n)
{
    n = (n + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    n = (n ^ (n >> 29)) * 0x94d049bb133111ebu;
    return n ^ (n >> 32);
}

static transport_frame numbered(uint64_t n)
{
    return (transport_frame){.call = (uint16_t)scramble(n + 1),
                             .signature = scramble(n + 2),
                             .message = n};
}

transport_frame frame_make(uint64_t n, size_t bytes)
{
    const uint64_t x = scramble(n);
    transport_frame frame = numbered(n);
    frame.flags = FRAME_LONG;
    frame.length = (uint8_t)x;
    frame.ext.bytes = bytes;
    frame.ext.count = ~x;
    frame.ext.dst_ref = x * 5;
    frame.ext.segment = (uint32_t)(x >> 24);
    frame.ext.root = (int32_t)(uint32_t)(x >> 4);
    return frame;
}

transport_frame frame_make_short(uint64_t n, size_t bytes)
{
    transport_frame frame = numbered(n);
    frame.length = (uint8_t)bytes;
    payload_fill(frame.data, n, bytes);
    return frame;
}

void frame_check(const transport_frame *frame, uint64_t n, size_t bytes)
{
    transport_frame expected = frame->flags == 0 ? frame_make_short(n, bytes)
                                                 : frame_make(n, bytes);
    expected.stamp = frame->stamp;
    expected.flags = frame->flags;
    must(frame->message == n);
    must(memcmp(frame, &expected, sizeof expected) == 0);
}

void payload_fill(void *payload, uint64_t n, size_t bytes)
{
    unsigned char *at = payload;
    uint64_t word = scramble(n);
    for (size_t i = 0; i < bytes; i += sizeof word, word += 0x9e3779b97f4a7c15u)
        memcpy(at + i, &word, min_size(sizeof word, bytes - i));
}

void payload_check(const void *payload, uint64_t n, size_t bytes)
{
    const unsigned char *at = payload;
    uint64_t word = scramble(n);
    for (size_t i = 0; i < bytes; i += sizeof word, word += 0x9e3779b97f4a7c15u)
        must(memcmp(at + i, &word, min_size(sizeof word, bytes - i)) == 0);
}

bool can_map(const transport_link *l)
{
    return l->transport->powers & TRANSPORT_CAN_MAP;
}

bool can_refer(const transport_link *l)
{
    return l->transport->powers & (TRANSPORT_CAN_MAP | TRANSPORT_REACHES);
}

/* ---- Moving them ---- */

void end_idle(transport_link *l, bool wants_send, unsigned *turns)
{
    const transport *t = l->transport;
    must_ok(t->progress(l));
    if (!wait_politely(turns, false))
        return;
    if (!t->arm(l, wants_send))
        return;
    struct pollfd entry = {.fd = t->wake_fd(l), .events = POLLIN};
    must(poll(&entry, 1, (int)(PATIENCE * 1e3)) == 1);
    t->disarm(l);
}

void end_send(transport_link *l, const transport_frame *frame, const void *payload)
{
    const double give_up = clock_now() + PATIENCE;
    ring_status status;
    unsigned turns = 0;
    while ((status = l->transport->send(l, frame, payload, false)) == RING_IN_PROGRESS) {
        must(clock_now() < give_up);
        end_idle(l, true, &turns);
    }
    must_ok(status);
}

/* @return true if the oldest frame has arrived with its payload. */
static bool is_here(transport_link *l, const transport_frame **frame, const void **payload)
{
    const ring_status status = l->transport->peek(l, frame, payload);
    if (status == RING_IN_PROGRESS)
        return false;
    must_ok(status);
    return *payload != NULL || transport_behind(*frame) == 0;
}

const transport_frame *end_receive(transport_link *l, const void **payload)
{
    const double give_up = clock_now() + PATIENCE;
    const transport_frame *frame;
    unsigned turns = 0;
    while (!is_here(l, &frame, payload)) {
        must(clock_now() < give_up);
        end_idle(l, false, &turns);
    }
    return frame;
}

const transport_frame *ends_receive(transport_link *from, transport_link *to, const void **payload)
{
    const double give_up = clock_now() + PATIENCE;
    const transport_frame *frame;
    while (!is_here(to, &frame, payload)) {
        must(clock_now() < give_up);
        must_ok(from->transport->progress(from));
        must_ok(to->transport->progress(to));
        nic_settle();
        sched_yield(); /* the thread of a double may have to run */
    }
    return frame;
}

void end_pull(transport_link *l, void *dst)
{
    const double give_up = clock_now() + PATIENCE;
    ring_status status;
    unsigned turns = 0;
    while ((status = l->transport->pull(l, dst)) == RING_IN_PROGRESS) {
        must(clock_now() < give_up);
        end_idle(l, false, &turns);
    }
    must_ok(status);
}

void end_flush(transport_link *l)
{
    const double give_up = clock_now() + PATIENCE;
    unsigned turns = 0;
    while (l->transport->flushed(l) < l->frames_sent) {
        must(clock_now() < give_up);
        end_idle(l, true, &turns);
    }
}

/* Drops frames until no whole frame is left. */
static ring_status drain(transport_link *l)
{
    const transport *t = l->transport;
    const transport_frame *frame;
    const void *payload;
    ring_status status = t->progress(l);
    if (status != RING_OK)
        return status;
    while ((status = t->peek(l, &frame, &payload)) == RING_OK) {
        if (payload == NULL && transport_behind(frame) > 0)
            return RING_IN_PROGRESS;
        t->consume(l);
    }
    return status;
}

static void expect_text_names(int peer)
{
    char rank[32];
    must(text_format(rank, sizeof rank, "rank %d", peer));
    must(strstr(fail_text(), rank) != NULL);
}

static void expect_stays_broken(transport_link *l, int peer)
{
    const transport *t = l->transport;
    const transport_frame *frame = NULL;
    const transport_frame empty = {0};
    const void *payload;
    must(!t->arm(l, false));
    must(t->reserve(l) == NULL);
    fail_clear();
    must_be(t->send(l, &empty, NULL, false), RING_ERR_PEER);
    expect_text_names(peer);
    must_be(t->peek(l, &frame, &payload), RING_ERR_PEER);
    must_be(t->progress(l), RING_ERR_PEER);
}

void end_expect_broken(transport_link *l, int peer, double seconds)
{
    const transport *t = l->transport;
    const double give_up = clock_now() + seconds;
    ring_status status;
    while ((status = drain(l)) == RING_IN_PROGRESS) {
        must(clock_now() < give_up);
        if (!t->arm(l, false))
            continue;
        struct pollfd entry = {.fd = t->wake_fd(l), .events = POLLIN};
        must(poll(&entry, 1, (int)(seconds * 1e3)) == 1);
        t->disarm(l);
    }
    must_be(status, RING_ERR_PEER);
    expect_text_names(peer);
    expect_stays_broken(l, peer);
}
