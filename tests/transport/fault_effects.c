/* SPDX-License-Identifier: Apache-2.0
 * Tests the fault link around every transport: each fault has its documented effect, and the same
 * seed repeats it. Usage: test_transport_fault TRANSPORT TEST */
#include "named.h"
#include "traffic.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { FRAME_BYTES = 1000 };
static unsigned char payload[FRAME_BYTES];

static ends open_with(const char *fault_a, const char *fault_b)
{
    ends_set_fault(RANK_A, fault_a);
    ends_set_fault(RANK_B, fault_b);
    return ends_open();
}

static ring_status send_one(transport_link *l, uint64_t n)
{
    const transport_frame frame = frame_make(n, sizeof payload);
    return l->transport->send(l, &frame, payload, false);
}

static void expect_text(const char *part)
{
    must(strstr(fail_text(), part) != NULL);
}

/* ---- The specification ---- */

static void expect_wrong_spec(const char *spec)
{
    ends e = open_with(NULL, NULL);
    transport_link *wrapped;
    end_disown(e.a);
    must_be(transport_fault_wrap(e.a, spec, &wrapped), RING_ERR_CONFIG);
    expect_text("RING_FAULT: ");
    end_expect_broken(e.b, RANK_A, 2); /* the inner link was closed */
    end_close(e.b);
}

static void test_spec_errors(void)
{
    static const char *const wrong[] = {"",
                                        ",",
                                        "seed",
                                        "seed=",
                                        "seed=x",
                                        "seed=-1",
                                        "seed=1,",
                                        "drop=1.1",
                                        "drop=-0.1",
                                        "drop=nan",
                                        "drop=0.1x",
                                        "delay=inf",
                                        "delay=1e9",
                                        "close=1K",
                                        "cloze=1",
                                        "truncate==",
                                        "seed=1;drop",
                                        "drop=0x.",
                                        "seed=99999999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_wrong_spec(wrong[i]);
    expect_wrong_spec("cloze=5");
    expect_text("close");
    ends e = open_with("seed=18446744073709551615,delay=.001,drop=0,truncate=0.0",
                       "close=1000000,delay=1e-3");
    ends_close(&e);
}

/* ---- Lies ---- */

/* All frames arrive with their payload, and most with a false header. */
static void test_lie(void)
{
    enum { LIES = 200 };
    ends e = open_with("lie=1", NULL);
    int untrue = 0;
    for (uint64_t n = 0; n < LIES; n++) {
        const transport_frame expected = frame_make(n, sizeof payload);
        const void *got;
        payload_fill(payload, n, sizeof payload);
        must_ok(send_one(e.a, n));
        const transport_frame *frame = ends_receive(e.a, e.b, &got);
        payload_check(got, n, sizeof payload);
        untrue += memcmp(&frame->flags, &expected.flags, sizeof expected - sizeof expected.stamp) !=
                  0;
        e.b->transport->consume(e.b);
    }
    must(untrue > LIES / 2);
    ends_close(&e);
}

/* ---- Delays ---- */

static void test_delay(void)
{
    ends e = open_with(NULL, "delay=0.03");
    for (uint64_t n = 0; n < 5; n++) {
        const transport_frame *frame;
        const void *got;
        const double start = clock_now();
        must_ok(send_one(e.a, n));
        must(e.b->transport->peek(e.b, &frame, &got) == RING_IN_PROGRESS ||
             clock_now() - start >= 0.03);
        frame_check(ends_receive(e.a, e.b, &got), n, sizeof payload);
        must(clock_now() - start >= 0.03);
        e.b->transport->consume(e.b);
    }
    ends_close(&e);
}

/* @return how often the wait for one frame was woken. */
static int count_wakes(transport_link *l)
{
    const transport *t = l->transport;
    const transport_frame *frame;
    const void *got;
    int wakes = 0;
    for (; t->peek(l, &frame, &got) == RING_IN_PROGRESS; wakes++) {
        if (!t->arm(l, false))
            continue;
        struct pollfd entry = {.fd = t->wake_fd(l), .events = POLLIN};
        must(poll(&entry, 1, (int)(PATIENCE * 1e3)) == 1);
        t->disarm(l);
    }
    t->consume(l);
    return wakes;
}

static void test_delay_sleeps(void)
{
    ends e = open_with(NULL, "delay=0.05");
    must_ok(send_one(e.a, 0));
    must_ok(send_one(e.a, 1));
    must_ok(e.a->transport->progress(e.a));
    must(count_wakes(e.b) < 20);
    must(count_wakes(e.b) < 20);
    ends_close(&e);
}

/* ---- Drops ---- */

enum { DROP_FRAMES = 1000 };

/* Records which frames arrive under @p fault. @return their number. */
static int arrivals(const char *fault, bool *arrived)
{
    ends e = open_with(fault, NULL);
    int count = 0;
    memset(arrived, 0, DROP_FRAMES);
    for (uint64_t n = 0; n < DROP_FRAMES; n++) {
        const uint64_t before = e.a->frames_sent;
        const transport_frame *frame;
        const void *got;
        must_ok(send_one(e.a, n));
        must(e.a->frames_sent == before + 1);
        end_flush(e.a);
        while (e.b->transport->peek(e.b, &frame, &got) == RING_OK) {
            if (got == NULL)
                continue;
            must(!arrived[frame->message] && frame->message <= n);
            arrived[frame->message] = true;
            count++;
            e.b->transport->consume(e.b);
        }
    }
    ends_close(&e);
    return count;
}

static void test_drop(void)
{
    bool arrived[DROP_FRAMES];
    must(arrivals("drop=0", arrived) == DROP_FRAMES);
    must(arrivals("drop=1", arrived) == 0);
    const int count = arrivals("drop=0.3", arrived);
    must(count > 620 && count < 780);
}

static void take_if_here(transport_link *l)
{
    const void *got;
    const transport_frame *frame;
    if (l->transport->peek(l, &frame, &got) == RING_OK && got != NULL)
        l->transport->consume(l);
}

static void test_drop_flushes(void)
{
    ends e = open_with("drop=0.5", NULL);
    uint64_t flushed = 0;
    for (uint64_t n = 0; n < DROP_FRAMES; n++) {
        while (send_one(e.a, n) == RING_IN_PROGRESS) {
            must_ok(e.a->transport->progress(e.a));
            take_if_here(e.b); /* the delayed frames */
        }
        const uint64_t now = e.a->transport->flushed(e.a);
        must(now >= flushed && now <= n + 1);
        flushed = now;
        take_if_here(e.b);
    }
    end_flush(e.a);
    must(e.a->transport->flushed(e.a) == DROP_FRAMES);
    ends_close(&e);
}

static void test_repeats(void)
{
    bool first[DROP_FRAMES], again[DROP_FRAMES], other[DROP_FRAMES];
    arrivals("seed=5,drop=0.5", first);
    arrivals("drop=0.5,seed=5", again);
    arrivals("seed=6,drop=0.5", other);
    must(memcmp(first, again, sizeof first) == 0);
    must(memcmp(first, other, sizeof first) != 0);
}

/* ---- Truncation ---- */

static void test_truncate(void)
{
    ends e = open_with(NULL, "truncate=1");
    const transport_frame *frame;
    const void *got;
    must_ok(send_one(e.a, 0));
    while (e.b->transport->peek(e.b, &frame, &got) == RING_IN_PROGRESS)
        must_ok(e.a->transport->progress(e.a));
    frame_check(frame, 0, sizeof payload);
    must(got == NULL && !e.b->transport->arm(e.b, false));
    end_expect_broken(e.b, RANK_A, 2);
    expect_text("500 of 1000 bytes");
    ends_close(&e);
}

/* A truncated payload inside the header hides the whole frame. */
static void test_truncate_short(void)
{
    ends e = open_with(NULL, "truncate=1");
    const transport_frame short_frame = frame_make_short(0, 8), *frame;
    const void *got;
    ring_status status;
    must_ok(e.a->transport->send(e.a, &short_frame, NULL, true));
    while ((status = e.b->transport->peek(e.b, &frame, &got)) == RING_IN_PROGRESS)
        must_ok(e.a->transport->progress(e.a));
    must_be(status, RING_ERR_PEER);
    expect_text("4 of 8 bytes");
    end_expect_broken(e.b, RANK_A, 2);
    ends_close(&e);
}

static void test_truncate_pull(void)
{
    unsigned char dst[FRAME_BYTES], untouched[FRAME_BYTES];
    memset(dst, 0xa5, sizeof dst);
    memset(untouched, 0xa5, sizeof untouched);
    payload_fill(payload, 3, sizeof payload);
    ends e = open_with(NULL, "truncate=1");
    const transport_frame *frame;
    const void *got;
    ring_status status;
    must_ok(send_one(e.a, 0));
    while (e.b->transport->peek(e.b, &frame, &got) == RING_IN_PROGRESS)
        must_ok(e.a->transport->progress(e.a));
    while ((status = e.b->transport->pull(e.b, dst)) == RING_IN_PROGRESS)
        must_ok(e.a->transport->progress(e.a));
    must_be(status, RING_ERR_PEER);
    payload_check(dst, 3, FRAME_BYTES / 2);
    must(memcmp(dst + FRAME_BYTES / 2, untouched, FRAME_BYTES / 2) == 0);
    end_expect_broken(e.b, RANK_A, 2);
    ends_close(&e);
}

/* ---- Closing ---- */

static void test_close(void)
{
    for (int round = 0; round < 3; round++) {
        ends e = open_with("close=4500", NULL);
        ring_status status;
        uint64_t n = 0;
        while ((status = send_one(e.a, n)) == RING_OK)
            n++;
        must_be(status, RING_ERR_PEER);
        must(n == 5 && e.a->transport->flushed(e.a) == 5);
        expect_text("after 5000 bytes");
        end_expect_broken(e.a, RANK_B, 2);
        end_expect_broken(e.b, RANK_A, 2);
        ends_close(&e);
    }
}

static void test_close_by_received_bytes(void)
{
    ends e = open_with(NULL, "close=3000");
    for (uint64_t n = 0; n < 3; n++) {
        const void *got;
        must_ok(send_one(e.a, n));
        frame_check(ends_receive(e.a, e.b, &got), n, sizeof payload);
        e.b->transport->consume(e.b);
    }
    end_expect_broken(e.b, RANK_A, 2);
    end_expect_broken(e.a, RANK_B, 2);
    ends_close(&e);
}

static void test_close_at_once(void)
{
    ends e = open_with("close=0", NULL);
    must_be(send_one(e.a, 0), RING_ERR_PEER);
    must(e.a->frames_sent == 0);
    end_expect_broken(e.a, RANK_B, 2);
    end_expect_broken(e.b, RANK_A, 2);
    ends_close(&e);
}

#define TEST(name) \
    { \
#name, test_##name \
    }
static const named_test tests[] = {
    TEST(spec_errors),
    TEST(delay),
    TEST(delay_sleeps),
    TEST(drop),
    TEST(lie),
    TEST(drop_flushes),
    TEST(repeats),
    TEST(truncate),
    TEST(truncate_pull),
    TEST(truncate_short),
    TEST(close),
    TEST(close_at_once),
    TEST(close_by_received_bytes),
};
#undef TEST

int main(int argc, char **argv)
{
    if (argc == 3 && ends_choose(argv[1]))
        return named_run(tests, sizeof tests / sizeof *tests, argv[2]);
    fprintf(stderr, "usage: %s TRANSPORT TEST, of a known transport\n", argv[0]);
    return 2;
}
