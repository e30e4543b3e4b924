/* SPDX-License-Identifier: Apache-2.0
 * Links of one pair of ranks share a bell: they cost no descriptors, wake each other's sleepers,
 * and end apart. For loop and shm, both ends here. */
#include "pair.h"

#include <poll.h>

#include "unit_test.h"

/* An end's caller, as transports know it. */
typedef struct caller {
    int wakes;
} caller;

static void wake(void *context)
{
    ((caller *)context)->wakes++;
}

static transport_link *open_end(const transport *t, int rank, int fd, const int *owner, caller *c)
{
    transport_link *l;
    const transport_peer peer = {.rank = rank,
                                 .peer = 1 - rank,
                                 .fd = fd,
                                 .pair = {owner, 1 - rank, wake, c}};
    assert_int_equal(t->open(&peer, &l), RING_OK);
    return l;
}

static int owners[2];
static caller callers[2][2]; /* [link][rank] */

/* The ends of a link of the pair, open. @param number  of its callers. */
static void open_link(const transport *t, int number, bool shares, transport_link *ends[2])
{
    int fds[2];
    pair_sockets(fds);
    for (int rank = 0; rank < 2; rank++) {
        callers[number][rank] = (caller){0};
        ends[rank] = open_end(t, rank, fds[rank], shares ? &owners[rank] : NULL,
                              &callers[number][rank]);
    }
    const double end = clock_now() + 20;
    while (t->progress(ends[0]) == RING_IN_PROGRESS || t->progress(ends[1]) == RING_IN_PROGRESS)
        assert_true(clock_now() < end);
}

/* Two links that share their bell. */
static void open_two(const transport *t, transport_link *first[2], transport_link *second[2])
{
    open_link(t, 0, true, first);
    open_link(t, 1, true, second);
}

static void send_empty(transport_link *l)
{
    assert_int_equal(l->transport->send(l, &(transport_frame){0}, NULL, true), RING_OK);
}

static bool is_readable(const transport_link *l)
{
    struct pollfd entry = {.fd = l->transport->wake_fd(l), .events = POLLIN};
    return poll(&entry, 1, 0) == 1;
}

static const transport *transports[] = {&transport_loop, &transport_shm};
enum { TRANSPORTS = sizeof transports / sizeof *transports };

static void the_second_link_of_a_pair_costs_no_descriptor(void **state)
{
    for (int i = 0; i < TRANSPORTS; i++) {
        transport_link *first[2], *second[2], *apart[2];
        open_link(transports[i], 0, true, first);
        const size_t before = pair_count_fds();
        open_link(transports[i], 1, true, second);
        assert_int_equal(pair_count_fds(), before);
        open_link(transports[i], 1, false, apart);
        assert_in_range(pair_count_fds(), before + 2, before + 4);
        pair_close(apart);
        pair_close(first); /* the bell stays for the second */
        assert_int_equal(pair_count_fds(), before);
        pair_close(second);
        assert_int_equal(pair_count_fds(), before - 2);
    }
}

static void a_reader_wakes_the_sleepers_of_other_links(void **state)
{
    for (int i = 0; i < TRANSPORTS; i++) {
        transport_link *first[2], *second[2];
        const void *payload;
        open_two(transports[i], first, second);
        assert_true(transports[i]->arm(first[1], false));
        assert_true(transports[i]->arm(second[1], false));
        send_empty(first[0]);
        assert_true(is_readable(first[1]));
        assert_true(is_readable(second[1]));
        transports[i]->disarm(first[1]); /* reads its own byte; the other link was not rung */
        assert_int_equal(callers[1][1].wakes, 0);
        (void)pair_receive(first[1], &payload);
        transports[i]->consume(first[1]);
        assert_true(transports[i]->arm(first[1], false));
        send_empty(first[0]);
        send_empty(second[0]);
        transports[i]->disarm(first[1]); /* reads both bytes */
        assert_false(is_readable(second[1]));
        assert_int_equal(callers[1][1].wakes, 1);
        assert_int_equal(callers[0][1].wakes, 0);
        transports[i]->disarm(second[1]);
        pair_close(first);
        pair_close(second);
    }
}

static void a_link_that_closes_ends_alone(void **state)
{
    for (int i = 0; i < TRANSPORTS; i++) {
        transport_link *first[2], *second[2];
        const void *payload;
        open_two(transports[i], first, second);
        assert_true(transports[i]->arm(first[1], true));
        transports[i]->close(first[0]);
        first[0] = NULL;
        assert_true(is_readable(first[1]));
        transports[i]->disarm(first[1]);
        assert_int_equal(pair_await_broken(first[1]), RING_ERR_PEER);
        send_empty(second[0]);
        (void)pair_receive(second[1], &payload);
        transports[i]->consume(second[1]);
        send_empty(second[1]);
        (void)pair_receive(second[0], &payload);
        pair_close(first);
        pair_close(second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_link_of_a_pair_costs_no_descriptor),
        cmocka_unit_test(a_reader_wakes_the_sleepers_of_other_links),
        cmocka_unit_test(a_link_that_closes_ends_alone),
    };
    return cmocka_run_group_tests_name("base.bells", tests, NULL, NULL);
}
