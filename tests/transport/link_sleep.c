/* SPDX-License-Identifier: Apache-2.0
 * Tests sleeping on a link: no wake-up is lost, and no thread is kept awake without a reason. */
#include "conformance.h"

#include <poll.h>

static int poll_wake(transport_link *l, int milliseconds)
{
    struct pollfd entry = {.fd = l->transport->wake_fd(l), .events = POLLIN};
    return poll(&entry, 1, milliseconds);
}

/* Wake-ups may be spurious, but not for ever. @return true once it slept for 20 ms. */
static bool sleeps(transport_link *l, bool wants_send)
{
    for (int attempt = 0; attempt < 10; attempt++) {
        must_ok(l->transport->progress(l));
        if (!l->transport->arm(l, wants_send))
            continue;
        const int ready = poll_wake(l, 20);
        l->transport->disarm(l);
        if (ready == 0)
            return true;
    }
    return false;
}

void behaviour_quiet_link_sleeps(void)
{
    ends e = ends_open();
    const transport_frame *got, empty = frame_make(0, 0);
    const void *payload;
    must(sleeps(e.a, false) && sleeps(e.b, false));
    must_ok(e.a->transport->send(e.a, &empty, NULL, false));
    ends_receive(e.a, e.b, &payload);
    e.b->transport->consume(e.b);
    must_be(e.b->transport->peek(e.b, &got, &payload), RING_IN_PROGRESS);
    must(sleeps(e.a, false) && sleeps(e.b, false));
    ends_close(&e);
}

void behaviour_armed_link_tells_what_is_there(void)
{
    ends e = ends_open();
    const transport_frame empty = frame_make(0, 0);
    for (int round = 0; round < 100; round++) {
        const bool before = round % 2 == 0;
        bool armed = false;
        if (!before)
            armed = e.b->transport->arm(e.b, false);
        must_ok(e.a->transport->send(e.a, &empty, NULL, false));
        must_ok(e.a->transport->progress(e.a));
        if (before)
            armed = e.b->transport->arm(e.b, false);
        if (armed) {
            must(poll_wake(e.b, (int)(PATIENCE * 1e3)) == 1);
            e.b->transport->disarm(e.b);
        }
        const void *payload;
        ends_receive(e.a, e.b, &payload);
        e.b->transport->consume(e.b);
    }
    ends_close(&e);
}

/* @return true if a caller that goes to sleep now really sleeps: nothing keeps it awake. */
static bool would_sleep(transport_link *l, bool wants_send)
{
    if (!l->transport->arm(l, wants_send))
        return false;
    const bool quiet = poll_wake(l, 0) == 0;
    l->transport->disarm(l);
    return quiet;
}

/* Both frames may have arrived together; then the second causes no event of its own. */
void behaviour_armed_link_tells_of_the_second_frame(void)
{
    static unsigned char payload[100];
    ends e = ends_open();
    for (uint64_t n = 0; n < 100; n++) {
        const transport_frame frame = frame_make(n, n % 2 * sizeof payload);
        const void *got;
        must_ok(e.a->transport->send(e.a, &frame, payload, false));
        must_ok(e.a->transport->send(e.a, &frame, payload, false));
        ends_receive(e.a, e.b, &got);
        e.b->transport->consume(e.b);
        ends_settle();
        must(!would_sleep(e.b, false));
        ends_receive(e.a, e.b, &got);
        e.b->transport->consume(e.b);
    }
    ends_close(&e);
}

static void receive_one(const ends *e)
{
    const void *payload;
    ends_receive(e->a, e->b, &payload);
    e->b->transport->consume(e->b);
}

/* The link has no room, unless the transport has flushed frames in the meantime. */
static void expect_no_room(transport_link *l, const transport_frame *frame, const void *payload)
{
    const uint64_t flushed = l->transport->flushed(l);
    const bool pending = flushed < l->frames_sent;
    const ring_status status = l->transport->send(l, frame, payload, false);
    must(status == RING_IN_PROGRESS || (pending && l->transport->flushed(l) > flushed));
}

/* Whenever a blocked sender would sleep, there is really no room; and when all frames have been
 * consumed, arm() reports it as often as it is called. */
void behaviour_armed_link_tells_of_room(void)
{
    static unsigned char payload[TRANSPORT_SEGMENT];
    ends e = ends_open();
    const transport_frame frame = frame_make(0, sizeof payload);
    const transport *t = e.a->transport;
    while (t->send(e.a, &frame, payload, false) == RING_OK)
        continue;
    for (int n = 0; n < 200; n++) {
        receive_one(&e);
        ends_settle();
        if (would_sleep(e.a, true))
            expect_no_room(e.a, &frame, payload);
        while (t->send(e.a, &frame, payload, false) == RING_OK)
            continue;
    }
    while (e.b->frames_received < e.a->frames_sent)
        receive_one(&e);
    ends_settle();
    for (int again = 0; again < 3; again++)
        must(!would_sleep(e.a, true));
    ends_close(&e);
}

/* ---- Both ends sleep at once, at drifting moments ---- */

enum { PINGS = 30000, SEGMENTS = 4000 };
static const double LONGEST = 10; /* s; a loaded machine takes a millisecond a ping */
static const uint64_t LAST = UINT64_MAX;

static void drift(uint64_t n)
{
    const double until = clock_now() + (double)(scramble(n) % 16) * 1e-6;
    while (clock_now() < until)
        continue;
}

/* @return the number of the frame. */
static uint64_t sleep_until_here(transport_link *l)
{
    const transport_frame *frame;
    const void *payload;
    const double give_up = clock_now() + PATIENCE;
    ring_status status;
    while ((status = l->transport->peek(l, &frame, &payload)) == RING_IN_PROGRESS) {
        must(clock_now() < give_up);
        if (!l->transport->arm(l, false))
            continue;
        must(poll_wake(l, (int)(PATIENCE * 1e3)) == 1);
        l->transport->disarm(l);
    }
    must_ok(status);
    const uint64_t n = frame->message;
    l->transport->consume(l);
    return n;
}

static void ping(transport_link *l)
{
    const double until = clock_now() + LONGEST;
    bool last = false;
    for (uint64_t n = 0; !last; n++) {
        last = n + 1 == PINGS || clock_now() > until;
        const transport_frame frame = frame_make(last ? LAST : n, 0);
        end_send(l, &frame, NULL);
        drift(n);
        must(sleep_until_here(l) == frame.message);
    }
}

static void pong(transport_link *l)
{
    uint64_t n;
    do {
        n = sleep_until_here(l);
        const transport_frame frame = frame_make(n, 0);
        drift(n * 3);
        end_send(l, &frame, NULL);
    } while (n != LAST);
    end_flush(l);
}

void behaviour_sleeping_receiver_wakes(void)
{
    ends_run(ping, pong);
}

static void sleep_until_sent(transport_link *l, const transport_frame *frame, const void *payload)
{
    const double give_up = clock_now() + PATIENCE;
    ring_status status;
    while ((status = l->transport->send(l, frame, payload, false)) == RING_IN_PROGRESS) {
        must(clock_now() < give_up);
        if (!l->transport->arm(l, true))
            continue;
        must(poll_wake(l, (int)(PATIENCE * 1e3)) == 1);
        l->transport->disarm(l);
        must_ok(l->transport->progress(l));
    }
    must_ok(status);
}

static void produce(transport_link *l)
{
    static unsigned char payload[TRANSPORT_SEGMENT];
    for (uint64_t n = 0; n < SEGMENTS; n++) {
        const transport_frame frame = frame_make(n, sizeof payload);
        sleep_until_sent(l, &frame, payload);
    }
    end_flush(l);
}

static void consume_with_naps(transport_link *l)
{
    const void *payload;
    for (uint64_t n = 0; n < SEGMENTS; n++) {
        if (scramble(n) % 64 == 0)
            clock_sleep(1e-3);
        frame_check(end_receive(l, &payload), n, TRANSPORT_SEGMENT);
        l->transport->consume(l);
    }
}

void behaviour_sleeping_sender_wakes(void)
{
    ends_run(produce, consume_with_naps);
}

/* ---- Releases ---- */

/* One release wakes once; room that was never missing does not wake. */
void behaviour_released_is_told_once(void)
{
    ends e = ends_open();
    const transport *t = e.a->transport;
    const transport_frame empty = frame_make_short(0, 0);
    must_ok(t->send(e.a, &empty, NULL, true));
    receive_one(&e);
    must(sleeps(e.a, true));
    for (uint64_t n = 1; n < 100; n++) {
        const uint64_t before = t->released(e.a);
        t->release(e.b, n);
        ends_settle();
        must(t->released(e.a) == n || before == UINT64_MAX);
        must(would_sleep(e.a, true) == (before == UINT64_MAX));
        must(sleeps(e.a, true));
    }
    ends_close(&e);
}

static void sleep_until_released(transport_link *l, uint64_t messages)
{
    const double give_up = clock_now() + PATIENCE;
    while (l->transport->released(l) < messages) {
        must(clock_now() < give_up);
        must_ok(l->transport->progress(l));
        if (!l->transport->arm(l, true))
            continue;
        must(poll_wake(l, (int)(PATIENCE * 1e3)) == 1);
        l->transport->disarm(l);
    }
}

static void lend(transport_link *l)
{
    for (uint64_t n = 0; n < PINGS; n++) {
        const transport_frame frame = frame_make_short(n, n % TRANSPORT_INLINE);
        end_send(l, &frame, NULL);
        drift(n);
        sleep_until_released(l, n + 1);
    }
    end_flush(l);
}

static void give_back(transport_link *l)
{
    for (uint64_t n = 0; n < PINGS; n++) {
        sleep_until_here(l);
        drift(n * 3);
        l->transport->release(l, n + 1);
    }
    ends_settle();
}

void behaviour_release_wakes_the_lender(void)
{
    ends_run(lend, give_back);
}

/* Two ranks both send first: frames that are not consumed yet must not keep a blocked sender awake
 * after it has peeked them. */
void behaviour_blocked_sender_sleeps_on_unread_frames(void)
{
    static unsigned char payload[TRANSPORT_SEGMENT];
    ends e = ends_open();
    const transport *t = e.b->transport;
    const transport_frame frame = frame_make(0, sizeof payload);
    const void *unread;
    for (int n = 0; n < 3; n++)
        must_ok(t->send(e.a, &frame, payload, false));
    ends_receive(e.a, e.b, &unread);
    while (t->send(e.b, &frame, payload, false) == RING_OK)
        continue;
    ends_settle();
    must(sleeps(e.b, true));
    must(t->peek(e.b, &(const transport_frame *){NULL}, &unread) == RING_OK && unread != NULL);
    ends_close(&e);
}
