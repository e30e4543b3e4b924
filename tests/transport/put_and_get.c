/* SPDX-License-Identifier: Apache-2.0
 * Tests put and get: the bytes that they transfer, their places, and the calls that must fail. */
#include "conformance.h"
#include "heap.h"
#include "regions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 300000 };

/* Two ends, and memory of each: registered memory at b, and heap memory at a, or registered memory
 * if the link cannot access the heap. */
typedef struct reach {
    ends e;
    bool heap;
    unsigned char *a, *b;
    uint64_t a_ref, b_ref;
} reach;

static void take_one(const ends *e, transport_link *at)
{
    const void *payload;
    ends_receive(at == e->a ? e->b : e->a, at, &payload);
    at->transport->consume(at);
}

/* Each end announces its memory to the other by a frame that refers to it. */
static uint64_t refer(const ends *e, transport_link *from, transport_link *to, const void *memory)
{
    transport_frame frame = frame_make(0, BYTES);
    const uint64_t ref = from->transport->ref(from, memory, BYTES);
    must(ref != 0);
    frame.flags = FRAME_LONG | FRAME_REF;
    frame.ext.src_ref = ref;
    must_ok(from->transport->send(from, &frame, NULL, true));
    take_one(e, to);
    must(to->transport->map(to, ref, 1) == NULL);
    return ref;
}

static void alloc_a(reach *r)
{
    must_ok(heap_alloc((void **)&r->a, BYTES));
    r->heap = r->e.a->transport->ref(r->e.a, r->a, BYTES) != 0;
    if (r->heap)
        return;
    must_ok(heap_free(r->a));
    r->a = malloc(BYTES);
    must(r->a != NULL);
    must_ok(region_add(r->a, BYTES, REGION_PLAIN));
}

static void free_a(const reach *r)
{
    if (r->heap) {
        must_ok(heap_free(r->a));
        return;
    }
    must_ok(region_remove(r->a));
    free(r->a);
}

static reach reach_open(void)
{
    reach r = {.e = ends_open()};
    alloc_a(&r);
    r.b = malloc(BYTES);
    must(r.b != NULL);
    must(r.e.b->transport->ref(r.e.b, r.b, BYTES) == 0); /* before it is registered */
    must_ok(region_add(r.b, BYTES, REGION_PLAIN));
    r.a_ref = refer(&r.e, r.e.a, r.e.b, r.a);
    r.b_ref = refer(&r.e, r.e.b, r.e.a, r.b);
    return r;
}

static void reach_close(reach *r)
{
    ends_close(&r->e);
    must_ok(region_remove(r->b));
    free_a(r);
    free(r->b);
}

static ring_status await_ticket(const reach *r, const ticket *over)
{
    const double give_up = clock_now() + PATIENCE;
    while (ticket_status(over) == RING_IN_PROGRESS) {
        must(clock_now() < give_up);
        (void)r->e.a->transport->progress(r->e.a);
        (void)r->e.b->transport->progress(r->e.b);
    }
    return ticket_status(over);
}

static ring_status put(const reach *r, uint64_t n, size_t offset, size_t bytes, uint64_t ref)
{
    transport_frame frame = frame_make(n, bytes);
    frame.flags = FRAME_LONG | FRAME_STORED;
    return r->e.a->transport->put(r->e.a, &frame, r->a + offset, ref);
}

void behaviour_put_and_get(void)
{
    reach r = reach_open();
    const transport *t = r.e.a->transport;
    for (uint64_t n = 0; n < 200; n++) {
        const size_t offset = scramble(n) % BYTES, bytes = scramble(n + 1) % (BYTES - offset);
        ticket over;
        const void *none;
        payload_fill(r.a + offset, n, bytes);
        must_ok(put(&r, n, offset, bytes, r.b_ref + offset));
        const transport_frame *frame = ends_receive(r.e.a, r.e.b, &none);
        must(frame->flags == (FRAME_LONG | FRAME_STORED) && frame->ext.bytes == bytes);
        payload_check(r.b + offset, n, bytes); /* the frame says that it is all there */
        r.e.b->transport->consume(r.e.b);
        end_flush(r.e.a);
        payload_fill(r.b + offset, n * 3, bytes);
        must_ok(t->get(r.e.a, r.a + offset, r.b_ref + offset, bytes, &over));
        must_ok(await_ticket(&r, &over));
        payload_check(r.a + offset, n * 3, bytes);
    }
    reach_close(&r);
}

/* Many gets are in flight at once, each with its own ticket, and all complete. */
void behaviour_transfers_overtake_each_other(void)
{
    enum { MANY = 256, EACH = 1000 };
    static ticket over[MANY];
    reach r = reach_open();
    const transport *t = r.e.a->transport;
    bool early = false, overtaken = false;
    for (uint64_t n = 0; n < MANY; n++)
        payload_fill(r.b + n * EACH, n, EACH);
    for (uint64_t n = 0; n < MANY; n++)
        must_ok(t->get(r.e.a, r.a + n * EACH, r.b_ref + n * EACH, EACH, &over[n]));
    for (uint64_t n = MANY; n-- > 0;) {
        const bool is_over = ticket_status(&over[n]) != RING_IN_PROGRESS;
        overtaken |= early && !is_over;
        early |= is_over;
    }
    for (uint64_t n = 0; n < MANY; n++) {
        must_ok(await_ticket(&r, &over[n]));
        payload_check(r.a + n * EACH, n, EACH);
    }
    printf("%s\n", overtaken ? "some overtook others" : "none was seen to overtake another");
    reach_close(&r);
}

static void expect_refused(ring_status (*reach_out)(const reach *r, uint64_t ref), size_t offset)
{
    reach r = reach_open();
    must_be(reach_out(&r, r.b_ref + offset), RING_ERR_PEER);
    end_expect_broken(r.e.a, RANK_B, 2);
    reach_close(&r);
}

static ring_status put_64(const reach *r, uint64_t ref)
{
    return put(r, 0, 0, 64, ref);
}

static ring_status get_64(const reach *r, uint64_t ref)
{
    ticket over;
    return r->e.a->transport->get(r->e.a, r->a, ref, 64, &over);
}

void behaviour_reaching_out_of_bounds(void)
{
    static const size_t beyond[] = {BYTES, BYTES - 63, (size_t)1 << 40,
                                    (size_t)7 << REGION_OFFSET_BITS};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        expect_refused(put_64, beyond[i]);
        expect_refused(get_64, beyond[i]);
    }
}

/* A key is valid until its region is removed. */
static void expect_stale_key(void)
{
    reach r = reach_open();
    unsigned char *gone = r.b;
    ticket over;
    must_ok(region_remove(r.b));
    r.b = malloc(BYTES);
    must(r.b != NULL);
    must_ok(region_add(r.b, BYTES, REGION_PLAIN));
    must_ok(r.e.a->transport->get(r.e.a, r.a, r.b_ref, 64, &over));
    must_be(await_ticket(&r, &over), RING_ERR_PEER);
    end_expect_broken(r.e.a, RANK_B, 2);
    free(gone);
    reach_close(&r);
}

/* After an end was stopped no transfer accesses its memory. */
void behaviour_stopped_link_moves_nothing(void)
{
    expect_stale_key();
    for (uint64_t round = 0; round < 20; round++) {
        reach r = reach_open();
        payload_fill(r.a, round, BYTES);
        memset(r.b, 0, BYTES);
        for (size_t n = 0; n < 20; n++)
            must_ok(put(&r, n, n * 10000, 10000, r.b_ref + n * 10000));
        transport_link *stopped = round % 2 == 0 ? r.e.a : r.e.b;
        stopped->transport->stop(stopped);
        unsigned char *seen = malloc(BYTES);
        must(seen != NULL);
        memcpy(seen, r.b, BYTES);
        ends_settle();
        must(memcmp(seen, r.b, BYTES) == 0);
        free(seen);
        reach_close(&r);
    }
}
