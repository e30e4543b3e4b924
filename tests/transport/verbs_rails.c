/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests rails of a verbs link that fail, over the double of libibverbs: frames move to the other
 * rail, once and unchanged, or the link breaks. Usage: test_transport_rails TEST */
#include "fake_ibverbs.h"
#include "heap.h"
#include "named.h"
#include "regions.h"
#include "traffic.h"

#include <infiniband/verbs.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 3000, BYTES = 30000, AHEAD = 8 };

/* Packets time out after a millisecond, and the queue pair fails after some of them. */
static const transport_ib hasty = {.hca = "", .gid_index = -1, .timeout = 8, .retries = 2};
/* The queue pair fails after some seconds. */
static const transport_ib patient = {.hca = "", .gid_index = -1, .timeout = 18, .retries = 7};

/* The queue pair never fails. */
static const transport_ib endless = {.hca = "", .gid_index = -1, .timeout = 0, .retries = 7};

static void cut(const char *device, bool is_cut)
{
    bool (*function)(const char *, bool);
    *(void **)&function = fake_ibverbs_function("fake_ibverbs_cut");
    must(function(device, is_cut));
}

static void report(const char *device, int event)
{
    bool (*function)(const char *, int);
    *(void **)&function = fake_ibverbs_function("fake_ibverbs_port_event");
    must(function(device, event));
}

/* ---- Two ends ---- */

static ends open_with(const char *spec, const transport_ib *ib)
{
    setenv("FAKE_IBVERBS", spec, 1);
    must(ends_choose("verbs"));
    ends_use_ib(ib);
    return ends_open();
}

/* Lets the adapter's thread run, too. */
static ring_status push(const ends *e)
{
    sched_yield();
    const ring_status status = e->a->transport->progress(e->a);
    return status != RING_OK ? status : e->b->transport->progress(e->b);
}

/* ---- Traffic both ways, some frames ahead ---- */

typedef struct way {
    transport_link *from, *to;
    uint64_t sent, taken;
    unsigned char *source; /* AHEAD pieces of BYTES, that stay until they are taken */
} way;

static size_t bytes_of(uint64_t n)
{
    return n % 4 == 0 ? n % TRANSPORT_INLINE : scramble(n) % BYTES;
}

static void send_some(way *w)
{
    while (w->sent < FRAMES && w->sent < w->taken + AHEAD) {
        const size_t bytes = bytes_of(w->sent);
        const transport_frame frame = w->sent % 4 == 0 ? frame_make_short(w->sent, bytes)
                                                       : frame_make(w->sent, bytes);
        unsigned char *at = w->source + w->sent % AHEAD * BYTES;
        payload_fill(at, w->sent, bytes);
        const ring_status status = w->from->transport->send(w->from, &frame, at, w->sent % 3 == 0);
        if (status == RING_IN_PROGRESS)
            return;
        must_ok(status);
        w->sent++;
    }
}

static void take_some(way *w)
{
    const transport_frame *frame;
    const void *payload;
    ring_status status;
    while ((status = w->to->transport->peek(w->to, &frame, &payload)) == RING_OK) {
        frame_check(frame, w->taken, bytes_of(w->taken));
        if (transport_behind(frame) > 0)
            payload_check(payload, w->taken, bytes_of(w->taken));
        w->to->transport->consume(w->to);
        w->taken++;
    }
    must_be(status, RING_IN_PROGRESS);
}

/* @param at  called once half of the frames were taken. */
static void run_traffic(const ends *e, void (*at)(void))
{
    unsigned char *memory[2];
    for (int i = 0; i < 2; i++)
        must_ok(heap_alloc((void **)&memory[i], AHEAD * BYTES));
    way ways[2] = {{.from = e->a, .to = e->b, .source = memory[0]},
                   {.from = e->b, .to = e->a, .source = memory[1]}};
    bool told = false;
    double give_up = clock_now() + PATIENCE;
    while (ways[0].taken < FRAMES || ways[1].taken < FRAMES) {
        const uint64_t before = ways[0].taken + ways[1].taken;
        if (!told && before >= FRAMES) {
            at();
            told = true;
        }
        for (int i = 0; i < 2; i++) {
            send_some(&ways[i]);
            take_some(&ways[i]);
        }
        must_ok(push(e));
        if (ways[0].taken + ways[1].taken > before)
            give_up = clock_now() + PATIENCE;
        must(clock_now() < give_up);
    }
    for (int i = 0; i < 2; i++)
        must_ok(heap_free(memory[i]));
}

/* ---- Tests ---- */

static void cut_first(void)
{
    cut("fake0", true);
}

static void goes_over(void)
{
    ends e = open_with("devices=2", &hasty);
    run_traffic(&e, cut_first);
    ends_close(&e);
}

static void nothing(void)
{
}

/* A port without that entry uses its own. */
static void gid_of_another_library(void)
{
    const transport_ib ib = {
        .hca = "", .gid_index = 99, .gid_from = "NCCL_IB_GID_INDEX", .timeout = 18, .retries = 7};
    ends e = open_with("devices=1", &ib);
    run_traffic(&e, nothing);
    ends_close(&e);
}

static void fail_first(void)
{
    report("fake0", IBV_EVENT_DEVICE_FATAL);
}

static void fatal_goes_over(void)
{
    ends e = open_with("devices=2", &patient);
    run_traffic(&e, fail_first);
    ends_close(&e);
}

/* fake0:1 and fake0:2 are one adapter. */
static void other_adapter_first(void)
{
    ends e = open_with("devices=2,ports=2", &patient);
    run_traffic(&e, fail_first);
    ends_close(&e);
}

static void fail_the_port(void)
{
    cut("fake0", true);
    report("fake0", IBV_EVENT_PORT_ERR);
}

static void port_error_goes_over(void)
{
    ends e = open_with("devices=2", &endless);
    run_traffic(&e, fail_the_port);
    ends_close(&e);
}

static void fail_and_mend(void)
{
    fail_the_port();
    clock_sleep(0.05);
    cut("fake0", false);
    report("fake0", IBV_EVENT_PORT_ACTIVE);
}

static void port_error_of_the_only_rail(void)
{
    ends e = open_with("devices=1", &endless);
    run_traffic(&e, fail_and_mend);
    ends_close(&e);
}

/* The first rail still works and the other does not: an end that changed rails would hang. */
static void fail_both_ports(void)
{
    cut("fake1", true);
    report("fake1", IBV_EVENT_PORT_ERR);
    report("fake0", IBV_EVENT_PORT_ERR);
}

static void port_error_of_both_rails(void)
{
    ends e = open_with("devices=2", &endless);
    run_traffic(&e, fail_both_ports);
    ends_close(&e);
}

static void mend(void)
{
    cut("fake0", true);
    clock_sleep(0.2);
    cut("fake0", false);
}

static void mended_in_time(void)
{
    ends e = open_with("devices=1", &patient);
    run_traffic(&e, mend);
    ends_close(&e);
}

/* The waiting end sends nothing, so only the sender notices the failure. */
static void all_cut(void)
{
    ends e = open_with("devices=2", &hasty);
    const transport_frame frame = frame_make_short(0, 8);
    cut("fake0", true);
    cut("fake1", true);
    must_ok(e.a->transport->send(e.a, &frame, NULL, true));
    end_expect_broken(e.a, RANK_B, 5);
    ends_close(&e);
}

/* @return true if it was not flushed. */
static bool push_until_flushed(transport_link *l, int turns, double end)
{
    const transport *t = l->transport;
    while (t->flushed(l) == 0 && turns-- > 0 && clock_now() < end)
        must_ok(t->progress(l));
    return t->flushed(l) == 0;
}

/* In most rounds the acknowledgement of a frame is delayed until its reader has closed. A link
 * waits a second for it, so on a busy machine a round may have to be abandoned. */
static void acknowledged_before_the_end(void)
{
    const transport_frame frame = frame_make_short(0, 8), *got;
    const void *none;
    for (int round = 0; round < 50; round++) {
        ends e = open_with("devices=1", &patient);
        must_ok(e.a->transport->send(e.a, &frame, NULL, true));
        while (e.b->transport->peek(e.b, &got, &none) == RING_IN_PROGRESS)
            continue;
        cut("fake0", true);
        const double end = clock_now() + 0.5;
        end_close(e.b);
        clock_sleep(1e-3);
        const bool is_late = push_until_flushed(e.a, 100, end); /* it hears of the close */
        cut("fake0", false);
        clock_sleep(1e-3);
        if (is_late && clock_now() < end)
            must_ok(e.a->transport->progress(e.a));
        (void)push_until_flushed(e.a, INT_MAX, end);
        end_close(e.a);
    }
}

/* Waits only at the receiver's end at first, so the sender learns of the change later. */
static void await_stored(const ends *e)
{
    transport_link *l = e->b;
    const transport_frame *frame;
    const void *none;
    const double start = clock_now();
    ring_status status;
    while ((status = l->transport->peek(l, &frame, &none)) == RING_IN_PROGRESS) {
        must_ok(clock_now() < start + 0.05 ? l->transport->progress(l) : push(e));
        must(clock_now() < start + PATIENCE);
    }
    must_ok(status);
    must(frame->flags == (FRAME_LONG | FRAME_STORED));
}

/* Posts a put after a get, whose answer may get lost while the put arrives. */
static void put_behind_get(const ends *e, uint64_t n, unsigned char *source, uint64_t ref,
                           ticket *over)
{
    transport_frame stored = frame_make(n, BYTES);
    stored.flags = FRAME_LONG | FRAME_STORED;
    payload_fill(source, n, BYTES);
    must_ok(e->a->transport->get(e->a, source + BYTES, ref, BYTES, over));
    must_ok(e->a->transport->put(e->a, &stored, source, ref));
}

static uint64_t refer(const ends *e, void *target)
{
    transport_frame frame = frame_make(0, BYTES);
    const void *none;
    frame.flags = FRAME_LONG | FRAME_REF;
    frame.ext.src_ref = e->b->transport->ref(e->b, target, BYTES);
    must_ok(e->b->transport->send(e->b, &frame, NULL, true));
    const uint64_t ref = ends_receive(e->b, e->a, &none)->ext.src_ref;
    e->a->transport->consume(e->a);
    return ref;
}

/* Memory that was put, seen and overwritten by its owner keeps the owner's bytes. */
static void puts_are_not_repeated(void)
{
    unsigned char *source, *target;
    must_ok(heap_alloc((void **)&source, 2 * BYTES));
    must_ok(heap_alloc((void **)&target, BYTES));
    for (uint64_t round = 0; round < 40; round++) {
        ends e = open_with("devices=2,delay=200", &hasty);
        const uint64_t ref = refer(&e, target);
        for (uint64_t n = 0; n < 8; n++) {
            ticket over;
            put_behind_get(&e, n, source, ref, &over);
            if (n == 4 && round % 2 == 0)
                cut("fake0", true);
            await_stored(&e);
            payload_check(target, n, BYTES);
            payload_fill(target, ~n, BYTES); /* it is its owner's again */
            e.b->transport->consume(e.b);
            if (n == 4 && round % 2 == 1)
                cut("fake0", true);
            const double give_up = clock_now() + PATIENCE;
            while (ticket_status(&over) == RING_IN_PROGRESS ||
                   e.a->transport->flushed(e.a) < e.a->frames_sent) {
                must_ok(push(&e)); /* both have to change the rail */
                must(clock_now() < give_up);
            }
            must_ok(ticket_status(&over));
            payload_check(target, ~n, BYTES);
        }
        cut("fake0", false);
        ends_close(&e);
    }
    must_ok(heap_free(source));
    must_ok(heap_free(target));
}

/* ---- Closed while a frame is written ---- */

static bool is_torn(transport_link *l)
{
    const transport_frame *frame;
    const void *payload;
    uint32_t value;
    const _Atomic uint32_t *turn = l->transport->news(l, &value);
    return atomic_load(turn) == value &&
           l->transport->peek(l, &frame, &payload) == RING_IN_PROGRESS;
}

/* Sends a frame and closes somewhat later. @return true if only a part of it arrived. */
static bool tear(ends *e, uint64_t round)
{
    const transport_frame frame = frame_make_short(round, 0);
    const double until = clock_now() + (double)(scramble(round) % 16) * 1e-6;
    must_ok(e->a->transport->send(e->a, &frame, NULL, true));
    while (clock_now() < until)
        ;
    end_close(e->a);
    return is_torn(e->b);
}

/* The round in which this happens is random; on one core it may not happen at all. */
static void closed_within_a_frame(void)
{
    const double give_up = clock_now() + PATIENCE / 2;
    bool torn = false;
    for (uint64_t round = 0; !torn && clock_now() < give_up; round++) {
        ends e = open_with("devices=1", NULL);
        torn = tear(&e, round);
        end_expect_broken(e.b, RANK_A, PATIENCE / 2);
        end_close(e.b);
    }
    if (!torn)
        printf("no frame was torn\n");
}

int main(int argc, char **argv)
{
    static const named_test tests[] = {{"goes_over", goes_over},
                                       {"gid_of_another_library", gid_of_another_library},
                                       {"fatal_goes_over", fatal_goes_over},
                                       {"other_adapter_first", other_adapter_first},
                                       {"port_error_goes_over", port_error_goes_over},
                                       {"port_error_of_the_only_rail", port_error_of_the_only_rail},
                                       {"port_error_of_both_rails", port_error_of_both_rails},
                                       {"mended_in_time", mended_in_time},
                                       {"all_cut", all_cut},
                                       {"acknowledged_before_the_end", acknowledged_before_the_end},
                                       {"puts_are_not_repeated", puts_are_not_repeated},
                                       {"closed_within_a_frame", closed_within_a_frame}};
    if (argc == 2)
        return named_run(tests, sizeof tests / sizeof *tests, argv[1]);
    fprintf(stderr, "usage: %s TEST\n", argv[0]);
    return 2;
}
