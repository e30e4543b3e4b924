/* SPDX-License-Identifier: Apache-2.0
 * Cases of loop alone: rings are shared by both ends, and only within one process. */
#include "lines_link.h"
#include "pair.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_test.h"

static void transports_are_listed_strongest_first_and_found_by_name(void **state)
{
    size_t count = 0;
    const transport *const *all = transport_all(&count);
    assert_true(count >= 3);
    assert_ptr_equal(all[0], &transport_loop);
    assert_ptr_equal(all[1], &transport_shm);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(transport_find(all[i]->name), all[i]);
    assert_null(transport_find("carrier pigeon"));
}

static void references_are_pointers(void **state)
{
    transport_link *ends[2];
    int value = 7;
    pair_open(&transport_loop, ends);
    const uint64_t ref = transport_loop.ref(ends[0], &value, sizeof value);
    assert_int_not_equal(ref, 0);
    assert_ptr_equal(transport_loop.map(ends[1], ref, sizeof value), &value);
    assert_int_equal(transport_loop.ref(ends[0], NULL, 0), 0);
    pair_close(ends);
}

/* The ring outlives the end that made it. */
static void frames_outlive_the_end_that_sent_them(void **state)
{
    for (int closing = 0; closing < 2; closing++) {
        transport_link *ends[2];
        const void *payload;
        const transport_frame frame = {.flags = FRAME_LONG, .message = 5, .ext.bytes = 6};
        pair_open(&transport_loop, ends);
        transport_link *rest = ends[1 - closing];
        assert_int_equal(transport_loop.send(ends[closing], &frame, "hello", false), RING_OK);
        transport_loop.close(ends[closing]);
        ends[closing] = NULL;
        for (int turn = 0; turn < 5000; turn++) /* long enough to notice the end */
            assert_int_equal(transport_loop.progress(rest), RING_OK);
        assert_int_equal(pair_receive(rest, &payload)->message, 5);
        assert_string_equal(payload, "hello");
        transport_loop.consume(rest);
        assert_int_equal(pair_await_broken(rest), RING_ERR_PEER);
        assert_int_equal(transport_loop.send(rest, &frame, "x", false), RING_ERR_PEER);
        assert_non_null(strstr(fail_text(), closing == 0 ? "rank 0" : "rank 1"));
        pair_close(ends);
    }
}

/* Plays rank 1 with this offer. */
static ring_status open_with_offer(uint64_t offer)
{
    int fds[2];
    opening o;
    const lines_greeting mine = lines_link_greeting(&(lines_link){0}, offer);
    pair_sockets(fds);
    opening_start(&o, &transport_loop, 0, fds[0], 10);
    assert_int_equal(fd_write_all(fds[1], &mine, sizeof mine, clock_now() + 10), RING_OK);
    const ring_status status = opening_end(&o);
    close(fds[1]);
    return status;
}

static void an_offer_that_nobody_made_is_refused(void **state)
{
    int local;
    const size_t before = pair_count_fds();
    assert_int_equal(open_with_offer(0), RING_ERR_PEER);
    assert_int_equal(open_with_offer(0xdeadbeef), RING_ERR_PEER);
    assert_int_equal(open_with_offer((uintptr_t)&local), RING_ERR_PEER);
    assert_int_equal(pair_count_fds(), before);
}

static void a_peer_that_never_answers_is_waited_for(void **state)
{
    int fds[2];
    opening o;
    pair_sockets(fds);
    opening_start(&o, &transport_loop, 0, fds[0], 0.05);
    assert_int_equal(opening_end(&o), RING_ERR_TIMEOUT);
    close(fds[1]);
}

static void ranks_of_two_processes_are_not_joined(void **state)
{
    int fds[2], status;
    pair_sockets(fds);
    const pid_t child = fork();
    if (child == 0) {
        const transport_peer peer = {.rank = 1, .peer = 0, .fd = fds[1]};
        transport_link *l;
        close(fds[0]);
        _exit(transport_loop.open(&peer, &l) == RING_ERR_UNSUPPORTED ? 0 : 1);
    }
    close(fds[1]);
    opening o;
    opening_start(&o, &transport_loop, 0, fds[0], 10);
    assert_int_equal(opening_end(&o), RING_ERR_PEER);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transports_are_listed_strongest_first_and_found_by_name),
        cmocka_unit_test(references_are_pointers),
        cmocka_unit_test(frames_outlive_the_end_that_sent_them),
        cmocka_unit_test(an_offer_that_nobody_made_is_refused),
        cmocka_unit_test(a_peer_that_never_answers_is_waited_for),
        cmocka_unit_test(ranks_of_two_processes_are_not_joined),
    };
    return cmocka_run_group_tests_name("base.loop", tests, NULL, NULL);
}
