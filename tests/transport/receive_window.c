/* SPDX-License-Identifier: Apache-2.0
 * Tests how many frames a link accepts ahead of its receiver, and the memory that they cost. */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

static unsigned char payload[TRANSPORT_SEGMENT];

/** Traffic between two ends that one thread drives. */
typedef struct flow {
    ends e;
    uint64_t sent, taken;
    size_t ahead;   /* bytes of the window in use */
    bool unsettled; /* the sender may not know what was taken */
    size_t (*bytes_of)(uint64_t n);
} flow;

/* Settling a link that writes to the peer's memory takes a round trip each time. */
static uint64_t repeats(const flow *f, uint64_t times)
{
    return f->e.a->transport->powers & TRANSPORT_REACHES ? times / 8 : times;
}

static transport_frame flow_frame(const flow *f, uint64_t n)
{
    const size_t bytes = f->bytes_of(n);
    return bytes <= TRANSPORT_INLINE ? frame_make_short(n, bytes) : frame_make(n, bytes);
}

static size_t window_bytes(const transport_frame *frame)
{
    return 64 + (transport_behind(frame) + 63) / 64 * 64;
}

/* Copied payloads differ; payloads that are not copied are all the same. */
static ring_status flow_send(flow *f)
{
    const transport_frame frame = flow_frame(f, f->sent);
    const bool copy = f->sent % 2 == 0;
    static unsigned char own[TRANSPORT_SEGMENT];
    if (copy)
        payload_fill(own, f->sent, transport_behind(&frame));
    if (f->unsettled)
        ends_settle();
    f->unsettled = false;
    const ring_status status = f->e.a->transport->send(f->e.a, &frame, copy ? own : payload, copy);
    if (status == RING_OK) {
        f->sent++;
        f->ahead += window_bytes(&frame);
    }
    return status;
}

static void flow_take(flow *f)
{
    const void *got;
    const transport_frame expected = flow_frame(f, f->taken);
    const transport_frame *frame = ends_receive(f->e.a, f->e.b, &got);
    frame_check(frame, f->taken, transport_carried(&expected));
    if (transport_behind(frame) > 0)
        payload_check(got, f->taken % 2 == 0 ? f->taken : 0, transport_behind(frame));
    f->ahead -= window_bytes(frame);
    f->e.b->transport->consume(f->e.b);
    f->taken++;
    f->unsettled = true;
}

static flow flow_open(size_t (*bytes_of)(uint64_t n))
{
    payload_fill(payload, 0, sizeof payload);
    return (flow){.e = ends_open(), .bytes_of = bytes_of};
}

static bool fits_window(const flow *f)
{
    const transport_frame next = flow_frame(f, f->sent);
    return f->ahead + window_bytes(&next) <= TRANSPORT_WINDOW_BYTES;
}

/* Sends to the edge of the window and as far as the link allows, from the end of the last round. */
static void expect_window(size_t (*bytes_of)(uint64_t n))
{
    flow f = flow_open(bytes_of);
    for (uint64_t round = 0; round < 12; round++) {
        while (fits_window(&f))
            must_ok(flow_send(&f));
        for (int more = 0; round % 3 == 1 && more < 1000 && flow_send(&f) == RING_OK; more++)
            continue;
        const uint64_t left = round % 2 == 0 ? 0 : scramble(round) % (f.sent - f.taken);
        while (f.taken + left < f.sent)
            flow_take(&f);
    }
    ends_close(&f.e);
}

static size_t eight_bytes(uint64_t n)
{
    return 8;
}

static size_t one_line(uint64_t n)
{
    return 41 + n % 24;
}

static size_t whole_segment(uint64_t n)
{
    return TRANSPORT_SEGMENT;
}

static size_t odd_lines(uint64_t n)
{
    return 16384 - 65 + n % 130; /* around the least size that tcp lends */
}

static size_t any_bytes(uint64_t n)
{
    const uint64_t x = scramble(n);
    switch (x % 8) {
    case 0:
        return (x >> 8) % (TRANSPORT_SEGMENT + 1);
    case 1:
        return TRANSPORT_SEGMENT;
    case 2:
        return (x >> 8) % 2000;
    default:
        return (x >> 8) % 100;
    }
}

void behaviour_window_in_bytes(void)
{
    expect_window(eight_bytes);
    expect_window(one_line);
    expect_window(whole_segment);
    expect_window(odd_lines);
    expect_window(any_bytes);
}

/* The window holds after any sends and takes, in any state of the link. */
void behaviour_window_at_any_time(void)
{
    flow f = flow_open(any_bytes);
    for (uint64_t step = 0, steps = repeats(&f, 30000); step < steps; step++) {
        const uint64_t x = scramble(step), phase = step / 300 % 4;
        const bool fits = fits_window(&f);
        if (f.sent == f.taken || (x % 8 < 1 + 2 * phase && (fits || x % 64 == 0)))
            must(flow_send(&f) == RING_OK || !fits);
        else
            flow_take(&f);
    }
    while (f.taken < f.sent)
        flow_take(&f);
    ends_close(&f.e);
}

/* Sends segments that are not copied, like plans that relay. */
void behaviour_window_in_segments(void)
{
    ends e = ends_open();
    const transport *t = e.a->transport;
    uint64_t sent = 0, taken = 0;
    for (uint64_t round = 0; round < 60; round++) {
        const void *got;
        ends_settle();
        for (; sent < taken + TRANSPORT_WINDOW + 1; sent++) {
            const transport_frame frame = frame_make(sent, TRANSPORT_SEGMENT);
            void *room = round % 3 == 0 ? t->reserve(e.a) : payload;
            must(room != NULL);
            payload_fill(room, 0, TRANSPORT_SEGMENT);
            must_ok(t->send(e.a, &frame, room, round % 3 == 1));
        }
        for (uint64_t end = taken + 1 + round % (TRANSPORT_WINDOW + 1); taken < end; taken++) {
            frame_check(ends_receive(e.a, e.b, &got), taken, TRANSPORT_SEGMENT);
            payload_check(got, 0, TRANSPORT_SEGMENT);
            t->consume(e.b);
        }
    }
    ends_close(&e);
}

/* An orderly close loses no flushed frame, however many are still queued for the kernel. */
void behaviour_flushed_frames_outlive_the_link(void)
{
    flow f = flow_open(any_bytes);
    unsigned turns = 0;
    while (fits_window(&f))
        must_ok(flow_send(&f));
    while (f.e.a->transport->flushed(f.e.a) < f.sent) {
        if (f.taken < f.sent) /* all may be there before the adapter says so */
            flow_take(&f);
        end_idle(f.e.a, true, &turns);
    }
    end_close(f.e.a);
    while (f.taken < f.sent) {
        const void *got;
        const transport_frame expected = flow_frame(&f, f.taken);
        frame_check(end_receive(f.e.b, &got), f.taken++, transport_carried(&expected));
        f.e.b->transport->consume(f.e.b);
    }
    end_expect_broken(f.e.b, RANK_A, 2);
    end_close(f.e.b);
}

/* ---- The word that announces frames ---- */

static void expect_news(flow *f)
{
    uint32_t value;
    const _Atomic uint32_t *word = f->e.b->transport->news(f->e.b, &value);
    must(word == NULL || f->taken < f->sent || __atomic_load_n(word, __ATOMIC_ACQUIRE) != value);
    must_ok(flow_send(f));
    ends_settle();
    must(word == NULL || __atomic_load_n(word, __ATOMIC_ACQUIRE) == value);
}

/* Visits all places of the link, with a reader that keeps up or lags a few frames. */
void behaviour_news_word_tells_of_the_oldest_frame(void)
{
    flow f = flow_open(any_bytes);
    for (uint64_t n = 0, frames = repeats(&f, 6000); n < frames; n++) {
        const uint64_t behind = n % 1000 < 500 ? 0 : scramble(n) % 12;
        expect_news(&f);
        while (f.taken + behind < f.sent)
            flow_take(&f);
    }
    ends_close(&f.e);
}

/* ---- Memory ---- */

void behaviour_short_frames_need_little_memory(void)
{
    flow f = flow_open(eight_bytes);
    for (uint64_t n = 0, frames = repeats(&f, 20000); n < frames; n++) {
        must_ok(flow_send(&f));
        while (f.taken + n % 7 < f.sent)
            flow_take(&f);
    }
    must(f.e.a->transport->memory(f.e.a) < 64 * 1024 || !can_map(f.e.a));
    const size_t before = f.e.a->transport->memory(f.e.a);
    for (uint64_t n = 0; n < 1000; n++) {
        must_ok(flow_send(&f));
        flow_take(&f);
    }
    must(f.e.a->transport->memory(f.e.a) == before);
    ends_close(&f.e);
}
