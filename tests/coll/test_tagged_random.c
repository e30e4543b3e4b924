/* SPDX-License-Identifier: Apache-2.0
 * Random tagged traffic among several ranks, judged by what matching by tag means, not by how it is
 * done: each message came once and whole, to a receive that may have it, and no message overtook an
 * earlier one of its sender.
 * Usage: test_coll_tagged_random TRANSPORT */
#include "draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "unit_test.h"

enum { RANKS = 4, MOST = 60, TAGS = 5 };

/** One message of the traffic, the same on all ranks. */
typedef struct message {
    int from, to, tag;
    size_t count; /* of int32 */
} message;

/** When receives are posted. */
typedef enum order { RECEIVES_FIRST, SENDS_FIRST, MIXED, ORDERS } order;

typedef struct traffic {
    message messages[MOST];
    int count;
    order order;
    bool any_tag; /* all are of one count, and some receives name neither source nor tag */
    bool blocking;
} traffic;

/** One receive of this rank, in the order in which they are posted. */
typedef struct receive {
    int source, tag;
    size_t count;
    int32_t *data;
    ring_envelope envelope;
    ring_work *work;
    int got; /* which message */
} receive;

/** This rank's part of it. */
typedef struct part {
    int rank;
    const traffic *traffic;
    ring_comm *comm;
    uint64_t draw;
    receive receives[MOST];
    int receive_count;
    int32_t *out[MOST];
    ring_work *sends[MOST];
} part;

static const size_t counts[] = {1, 10, 11, 100, 5000, 32768, 32769, 70000};
enum { COUNTS = sizeof counts / sizeof *counts };

static void draw_traffic(traffic *t, uint64_t *draw)
{
    size_t of_tag[TAGS];
    *t = (traffic){.count = 1 + (int)test_draw(draw, MOST),
                   .order = (order)test_draw(draw, ORDERS),
                   .any_tag = test_draw(draw, 3) == 0,
                   .blocking = test_draw(draw, 2) == 0};
    for (int i = 0; i < TAGS; i++)
        of_tag[i] = i == 0 || !t->any_tag ? counts[test_draw(draw, COUNTS)] : of_tag[0];
    for (int i = 0; i < t->count; i++) {
        message *m = &t->messages[i];
        *m = (message){.from = (int)test_draw(draw, RANKS),
                       .to = (int)test_draw(draw, RANKS),
                       .tag = (int)test_draw(draw, TAGS)};
        m->count = of_tag[m->tag];
    }
}

/* Receives that name more come first, so that no other takes their only message. */
static int width_of(const receive *r)
{
    return (r->source == RING_ANY_SOURCE) + (r->tag == RING_ANY_TAG);
}

static void draw_receives(part *p)
{
    const traffic *t = p->traffic;
    for (int i = 0; i < t->count; i++) {
        const message *m = &t->messages[i];
        const uint32_t width = test_draw(&p->draw, t->any_tag ? 3 : 2);
        if (m->to != p->rank)
            continue;
        receive r = {.source = width > 0 ? RING_ANY_SOURCE : m->from,
                     .tag = width > 1 ? RING_ANY_TAG : m->tag,
                     .count = m->count,
                     .got = -1};
        int at = p->receive_count++;
        for (; at > 0 && width_of(&p->receives[at - 1]) > width_of(&r); at--)
            p->receives[at] = p->receives[at - 1];
        p->receives[at] = r;
    }
}

/* ---- Making the calls -------------------------------------------------------------------- */

static int32_t word(int index, size_t i)
{
    return (int32_t)((uint32_t)index * 1000003u + (uint32_t)i);
}

static int send_one(part *p, int index, bool blocking)
{
    const message *m = &p->traffic->messages[index];
    ring_call call = RING_CALL_INIT;
    call.tagged = 1;
    call.tag = m->tag;
    call.work = blocking && m->to != p->rank ? NULL : &p->sends[index];
    p->out[index] = malloc(m->count * sizeof(int32_t));
    for (size_t i = 0; i < m->count; i++)
        p->out[index][i] = word(index, i);
    EXPECT_OK(ring_send(p->out[index], m->count, RING_INT32, m->to, p->comm, &call));
    return 0;
}

static int receive_one(part *p, receive *r, bool blocking)
{
    ring_call call = RING_CALL_INIT;
    call.tagged = 1;
    call.tag = r->tag;
    call.envelope = &r->envelope;
    call.work = blocking ? NULL : &r->work;
    r->data = malloc(r->count * sizeof(int32_t));
    EXPECT_OK(ring_recv(r->data, r->count, RING_INT32, r->source, p->comm, &call));
    return 0;
}

static int send_all(part *p, bool blocking)
{
    for (int i = 0; i < p->traffic->count; i++)
        if (p->traffic->messages[i].from == p->rank && send_one(p, i, blocking) != 0)
            return 1;
    return 0;
}

static int receive_all(part *p, bool blocking)
{
    for (int i = 0; i < p->receive_count; i++)
        if (receive_one(p, &p->receives[i], blocking) != 0)
            return 1;
    return 0;
}

static int make_mixed_calls(part *p)
{
    int next = 0;
    for (int i = 0; i < p->traffic->count; i++) {
        if (p->traffic->messages[i].from == p->rank && send_one(p, i, false) != 0)
            return 1;
        for (uint32_t n = test_draw(&p->draw, 3); n > 0 && next < p->receive_count; n--)
            if (receive_one(p, &p->receives[next++], false) != 0)
                return 1;
    }
    while (next < p->receive_count)
        if (receive_one(p, &p->receives[next++], false) != 0)
            return 1;
    return 0;
}

/* Receives that are all there let sends block; sends that are all under way let receives. */
static int make_calls(part *p)
{
    const bool blocking = p->traffic->blocking;
    switch (p->traffic->order) {
    case RECEIVES_FIRST:
        return receive_all(p, false) != 0 || send_all(p, blocking) != 0;
    case SENDS_FIRST:
        if (send_all(p, false) != 0)
            return 1;
        EXPECT_OK(ring_barrier(p->comm, NULL));
        return receive_all(p, blocking);
    default:
        return make_mixed_calls(p);
    }
}

/* ---- The oracle ------------------------------------------------------------------------------ */

static bool may_have(const receive *r, const message *m)
{
    return (r->source == RING_ANY_SOURCE || r->source == m->from) &&
           (r->tag == RING_ANY_TAG || r->tag == m->tag);
}

/* Which message it is says its first word. */
static int check_message(const part *p, receive *r)
{
    const traffic *t = p->traffic;
    int index = 0;
    while (index < t->count && word(index, 0) != r->data[0])
        index++;
    EXPECT(index < t->count, "rank %d got what nobody sent: %d", p->rank, r->data[0]);
    const message *m = &t->messages[index];
    EXPECT(m->to == p->rank && may_have(r, m), "rank %d: message %d to %d, tag %d", p->rank, index,
           m->to, m->tag);
    EXPECT(r->envelope.source == m->from && r->envelope.tag == m->tag,
           "message %d of rank %d, tag %d: told %d, %d", index, m->from, m->tag, r->envelope.source,
           r->envelope.tag);
    for (size_t i = 0; i < m->count; i++)
        EXPECT(r->data[i] == word(index, i), "message %d: element %zu of %zu", index, i, m->count);
    r->got = index;
    return 0;
}

/* Two messages of one sender, the second to a receive that was posted before that of the first and
 * might have had the first: it was overtaken. The traffic's order is that of each sender. */
static int check_order(const part *p)
{
    const message *messages = p->traffic->messages;
    for (int early = 0; early < p->receive_count; early++) {
        for (int late = early + 1; late < p->receive_count; late++) {
            const receive *a = &p->receives[early], *b = &p->receives[late];
            EXPECT(a->got != b->got, "message %d came twice", a->got);
            EXPECT(messages[a->got].from != messages[b->got].from || b->got > a->got ||
                       !may_have(a, &messages[b->got]),
                   "rank %d: receive %d got message %d, receive %d got message %d", p->rank, early,
                   a->got, late, b->got);
        }
    }
    return 0;
}

static int finish(part *p)
{
    for (int i = 0; i < p->receive_count; i++)
        EXPECT_OK(ring_wait(&p->receives[i].work));
    EXPECT_OK(ring_wait_all(p->sends, MOST));
    EXPECT_OK(ring_barrier(p->comm, NULL)); /* the next trial's messages must not match here */
    int bad = 0;
    for (int i = 0; i < p->receive_count && bad == 0; i++)
        bad = check_message(p, &p->receives[i]);
    bad = bad != 0 ? bad : check_order(p);
    for (int i = 0; i < p->receive_count; i++)
        free(p->receives[i].data);
    for (int i = 0; i < MOST; i++)
        free(p->out[i]);
    return bad;
}

static int trials(int rank, int ranks, harness_board *board, void *arg)
{
    const int count = test_is_long() ? 2000 : 60;
    uint64_t draw = test_seed();
    ring_comm *comm;
    int bad = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (int i = 0; i < count && bad == 0; i++) {
        traffic t;
        draw_traffic(&t, &draw);
        part p = {.rank = rank, .traffic = &t, .comm = comm, .draw = draw + (uint64_t)rank};
        draw_receives(&p);
        bad = make_calls(&p) != 0 || finish(&p) != 0;
        if (bad != 0)
            fprintf(stderr, "trial %d: order %d, any tag %d, blocking %d\n", i, (int)t.order,
                    t.any_tag, t.blocking);
    }
    ring_comm_destroy(comm);
    return bad;
}

static void test_messages_meet_receives_that_may_have_them_in_order(void **state)
{
    (void)test_seed(); /* before there are ranks, so that it is said once */
    run(RANKS, trials);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_meet_receives_that_may_have_them_in_order),
    };
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
