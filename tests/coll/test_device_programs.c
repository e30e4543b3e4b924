/* SPDX-License-Identifier: Apache-2.0
 * Programs run by the kernel for GPUs, over the emulation: all ranks of a call in one launch, a
 * block for each lane of each rank. Usage: test_coll_device_programs ALGORITHM */
#include "device_ranks.h"

#include "emulated_kernel.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

static const algo *algorithm;

static bool serves(plan_collective collective, int ranks)
{
    const plan_world world = {.ranks = ranks, .hosts = 1};
    return algo_serves(algorithm, collective, &world);
}

static device_case case_of(plan_collective collective, int ranks, size_t count, uint32_t lanes)
{
    return (device_case){.algorithm = algorithm,
                         .collective = collective,
                         .ranks = ranks,
                         .root = ranks / 2,
                         .count = collective == PLAN_BARRIER ? 0 : count,
                         .dtype = RING_INT32,
                         .op = RING_SUM,
                         .lanes = lanes};
}

/* Makes a few calls in sequence, each with other values. */
static void run_calls(const device_case *c, int calls)
{
    device_ranks *all = device_ranks_new(c);
    for (int call = 0; call < calls; call++) {
        device_ranks_fill(all, call);
        assert_true(device_ranks_launch(all));
        device_ranks_expect(all, call);
    }
    device_ranks_free(all);
}

/* ---- Results of collectives ---------------------------------------------------------------- */

static void test_every_collective(void **state)
{
    static const size_t counts[] = {0, 1, 5, 67, 1000, 9001};
    for (int ranks = 2; ranks <= DEVICE_MOST_RANKS; ranks++)
        for (plan_collective k = 0; k <= PLAN_BARRIER; k++)
            for (uint32_t i = 0; serves(k, ranks) && i < sizeof counts / sizeof *counts; i++) {
                device_case c = case_of(k, ranks, counts[i], i % 3 + 1);
                c.in_place = (i + (uint32_t)ranks) % 2 == 0;
                c.framed = (i + (uint32_t)k) % 2 == 0;
                run_calls(&c, 2);
            }
}

/* Some peers are in another process: what goes there is carried. */
static void test_every_collective_apart(void **state)
{
    static const size_t counts[] = {1, 67, 20001};
    for (int ranks = 2; ranks <= DEVICE_MOST_RANKS; ranks += ranks < 4 ? 1 : 2)
        for (plan_collective k = 0; k <= PLAN_BARRIER; k++)
            for (uint32_t i = 0; serves(k, ranks) && i < sizeof counts / sizeof *counts; i++) {
                device_case c = case_of(k, ranks, counts[i], i % 3 + 1);
                c.in_place = (i + (uint32_t)ranks) % 2 == 0;
                c.apart = true;
                c.framed = (i + (uint32_t)k) % 2 == 0;
                run_calls(&c, 2);
            }
}

/* The boxes are as small as those of a seat with little memory, or smaller, and fill up often. */
static void test_small_boxes(void **state)
{
    static const size_t counts[] = {67, 3001, 20001};
    for (int ranks = 2; ranks <= DEVICE_MOST_RANKS; ranks += ranks < 4 ? 1 : 2)
        for (plan_collective k = 0; k <= PLAN_BARRIER; k++)
            for (uint32_t i = 0; serves(k, ranks) && i < sizeof counts / sizeof *counts; i++) {
                device_case c = case_of(k, ranks, counts[i], i % 3 + 1);
                c.apart = (i + (uint32_t)ranks) % 2 == 0;
                c.frames = 32;
                c.window = i == 0 ? 3 << 10 : 28 << 10;
                run_calls(&c, 3);
            }
}

static void test_every_type_and_averages(void **state)
{
    for (plan_collective k = 0; k < PLAN_BARRIER; k++)
        for (ring_dtype dtype = 0; serves(k, 4) && dtype < RING_DTYPE_COUNT; dtype++) {
            device_case c = case_of(k, 4, 700, 2);
            c.dtype = dtype;
            c.op = plan_facts_of(k)->result == PLAN_SUM ? RING_AVG : RING_SUM;
            c.apart = dtype % 2 == 0;
            run_calls(&c, 1);
            c.framed = true;
            run_calls(&c, 1);
        }
}

/* The scratch memory holds only a part of src, so long calls are cut into slices. */
static void test_products(void **state)
{
    static const size_t counts[] = {0, 5, 1000, 9001};
    for (int ranks = 2; ranks <= DEVICE_MOST_RANKS; ranks += 2)
        for (plan_collective k = 0; k < PLAN_BARRIER; k++)
            for (uint32_t i = 0; serves(k, ranks) && i < 2 * sizeof counts / sizeof *counts; i++) {
                device_case c = case_of(k, ranks, counts[i / 2], i % 3 + 1);
                c.dtype = i % 2 == 0 ? RING_FLOAT32 : RING_FLOAT64;
                c.op = plan_facts_of(k)->reduces ? RING_PREMUL_SUM : RING_SUM;
                c.in_place = (i / 2 + (uint32_t)ranks / 2) % 2 == 0;
                c.apart = ranks % 4 == 0;
                c.framed = i / 2 % 2 == 0;
                run_calls(&c, 2);
            }
}

/* Words are late, threads run in every order, and the launch is the same each time. */
static void test_a_thousand_replays(void **state)
{
    const plan_collective k = serves(PLAN_ALL_REDUCE, 3) ? PLAN_ALL_REDUCE : PLAN_ALL_GATHER;
    device_case c = case_of(k, 3, 300, 2);
    for (int framed = 0; framed < 2; framed++) {
        c.framed = framed != 0;
        device_ranks *all = device_ranks_new(&c);
        emulated_set_delay(framed != 0 ? 200 : 20, 1); /* there are more words than frames */
        for (int call = 0; call < 500; call++) {
            emulated_set_order(call % 3, (unsigned)call);
            device_ranks_fill(all, call);
            assert_true(device_ranks_launch(all));
            device_ranks_expect(all, call);
        }
        emulated_set_delay(0, 0);
        emulated_set_order(EMULATED_FORWARD, 0);
        device_ranks_free(all);
    }
}

/* ---- Messages by words --------------------------------------------------------------------- */

/* Some calls send their messages by words, and others have messages that are a little too long. */
static void test_bounds_of_words(void **state)
{
    static const ring_dtype dtypes[] = {RING_INT8, RING_BFLOAT16, RING_FLOAT32, RING_INT64};
    for (int ranks = 2; ranks <= 4; ranks += 2)
        for (plan_collective k = 0; k < PLAN_BARRIER; k++)
            for (uint32_t i = 0; serves(k, ranks) && i < 4 * 6; i++) {
                const size_t most = DEVICE_SLOT_ELEMENTS(8 << 10,
                                                         dtypes[i / 6] == RING_INT64 ? 8 : 4);
                device_case c = case_of(k, ranks,
                                        (i % 6 < 3 ? 1 : (size_t)ranks) * most - 1 + i % 3, 1);
                c.dtype = dtypes[i / 6];
                c.frames = 32;
                c.window = 8 << 10;
                c.apart = (i + (uint32_t)k) % 2 == 0;
                run_calls(&c, 3);
            }
}

static device_link *link_of(device_ranks *all, int rank, int peer)
{
    return &device_ranks_call(all, rank)->links[peer];
}

/* Makes each link look as if it had sent so many messages by words, and fills all slots with old
 * words. */
static void pretend_messages(device_ranks *all, int ranks, uint64_t messages)
{
    for (int r = 0; r < ranks; r++)
        for (int peer = 0; peer < ranks; peer++) {
            device_link *l = link_of(all, r, peer);
            l->words_in = l->words_out = messages;
            for (uint32_t i = 0; i < DEVICE_SLOTS * DEVICE_SLOT_WORDS(l->window); i++)
                l->in.slots[i] = (messages - 4) << 32 | 0x5a5a5a5a;
        }
}

/* Slots are reused, and the flags wrap. Old words in slots are never mistaken for a message, and
 * there are no such words after the wrap. */
static void test_many_calls_by_words(void **state)
{
    const plan_collective k = serves(PLAN_ALL_REDUCE, 2) ? PLAN_ALL_REDUCE : PLAN_ALL_GATHER;
    const uint64_t wrap = (uint64_t)1 << 32;
    const int calls = strcmp(algorithm->name, "oneshot") == 0 ? 10000 : 500;
    device_case c = case_of(k, 2, 2, 1);
    c.threads = 2;
    device_ranks *all = device_ranks_new(&c);
    pretend_messages(all, 2, wrap - (uint64_t)calls / 2);
    for (int call = 0; call < calls; call++) {
        device_ranks_fill(all, call);
        assert_true(device_ranks_launch(all));
        device_ranks_expect(all, call);
    }
    for (int r = 0; r < 2; r++) {
        const device_link *l = link_of(all, r, 1 - r);
        assert_int_equal(l->words_out - wrap + (uint64_t)calls / 2, l->messages_out);
        for (uint32_t i = 0; i < DEVICE_SLOTS * DEVICE_SLOT_WORDS(l->window); i++)
            assert_in_range((uint32_t)(l->words_in - (l->in.slots[i] >> 32)), 0, 2 * calls);
    }
    device_ranks_free(all);
}

/* A call of 8 bytes has no frame, and no word that is stored with release semantics. Each step
 * takes a message by words. */
static void test_small_calls_have_no_frames(void **state)
{
    enum { CALLS = 50 };
    const plan_collective k = serves(PLAN_ALL_REDUCE, 2) ? PLAN_ALL_REDUCE : PLAN_ALL_GATHER;
    const device_case c = case_of(k, 2, 2, 1);
    device_ranks *all = device_ranks_new(&c);
    const uint64_t before = emulated_releases();
    for (int call = 0; call < CALLS; call++) {
        device_ranks_fill(all, call);
        assert_true(device_ranks_launch(all));
        device_ranks_expect(all, call);
    }
    assert_int_equal(emulated_releases() - before, 0);
    for (int r = 0; r < 2; r++) {
        const device_link *l = link_of(all, r, 1 - r);
        assert_int_equal(l->frames_out, 0);
        assert_in_range(l->words_out, CALLS, 2 * CALLS);
    }
    device_ranks_free(all);
}

/* ---- How calls fail -------------------------------------------------------------------------- */

static plan_collective exchanged(void)
{
    return serves(PLAN_ALL_REDUCE, 4) ? PLAN_ALL_REDUCE : PLAN_ALL_GATHER;
}

enum { LONG = 50000, SHORT = 5 }; /* with frames, and by words */

/* A rank that does nothing. */
static device_ranks *without_rank(int absent, size_t count)
{
    device_case c = case_of(exchanged(), 4, count, 2);
    device_ranks *all = device_ranks_new(&c);
    device_ranks_fill(all, 0);
    device_ranks_call(all, absent)->op_count = 0;
    return all;
}

static int lanes_that_ended_by(const device_ranks *all, ring_status status)
{
    int found = 0;
    for (int r = 0; r < 4; r++)
        for (uint32_t lane = 0; lane < device_ranks_lanes(all); lane++)
            found += device_ranks_verdict(all, r, lane)->status == (uint64_t)status;
    return found;
}

static void test_a_deadline_ends_what_waits(void **state)
{
    for (int i = 0; i < 2; i++) {
        device_ranks *all = without_rank(1, i == 0 ? LONG : SHORT);
        for (int r = 0; r < 4; r++)
            device_ranks_call(all, r)->nanoseconds = 50 * 1000 * 1000;
        assert_false(device_ranks_launch(all));
        assert_in_range(lanes_that_ended_by(all, RING_ERR_TIMEOUT), 1, 8);
        device_ranks_free(all);
    }
}

static void *end_it(void *all)
{
    usleep(20000);
    device_ranks_abort(all);
    return NULL;
}

static void test_an_abort_ends_what_waits(void **state)
{
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        device_ranks *all = without_rank(2, i == 0 ? LONG : SHORT);
        assert_int_equal(pthread_create(&thread, NULL, end_it, all), 0);
        assert_false(device_ranks_launch(all));
        pthread_join(thread, NULL);
        assert_in_range(lanes_that_ended_by(all, RING_ERR_ABORTED), 1, 8);
        device_ranks_free(all);
    }
}

/* Expects that at least one of the two ranks finds the mismatch; the other may have nothing to
 * receive. @param framed  rank 1 sends no message by words. */
static void expect_mismatch(size_t count, bool framed)
{
    int seen = 0;
    device_case c = case_of(exchanged(), 2, count, 1);
    device_ranks *all = device_ranks_new(&c);
    device_ranks_fill(all, 0);
    device_ranks_call(all, 1)->signature = 8;
    if (framed)
        device_ranks_call(all, 1)->words = 0;
    for (int r = 0; r < 2; r++)
        device_ranks_call(all, r)->nanoseconds = 100 * 1000 * 1000;
    assert_false(device_ranks_launch(all));
    for (int r = 0; r < 2; r++) {
        const device_verdict *v = device_ranks_verdict(all, r, 0);
        const uint64_t theirs = device_ranks_call(all, 1 - r)->signature;
        seen += v->status == RING_ERR_MISMATCH && v->their_signature == theirs &&
                v->peer == (uint64_t)(1 - r);
    }
    assert_in_range(seen, 1, 2);
    device_ranks_free(all);
}

static void test_another_call_is_seen(void **state)
{
    expect_mismatch(LONG, false);
    expect_mismatch(SHORT, false);
    expect_mismatch(SHORT, true); /* one rank waits for words, the other one for a frame */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_collective),
        cmocka_unit_test(test_every_collective_apart),
        cmocka_unit_test(test_small_boxes),
        cmocka_unit_test(test_every_type_and_averages),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_a_thousand_replays),
        cmocka_unit_test(test_bounds_of_words),
        cmocka_unit_test(test_many_calls_by_words),
        cmocka_unit_test(test_small_calls_have_no_frames),
        cmocka_unit_test(test_a_deadline_ends_what_waits),
        cmocka_unit_test(test_an_abort_ends_what_waits),
        cmocka_unit_test(test_another_call_is_seen),
    };
    algorithm = argc == 2 ? algo_find(argv[1]) : NULL;
    if (algorithm == NULL)
        return 2;
    return cmocka_run_group_tests_name("coll.device_programs", tests, NULL, NULL);
}
