/* SPDX-License-Identifier: Apache-2.0
 * Layouts: chunks cover the vector once, in order, and differ by at most one element. */
#include "plan.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const size_t counts[] = {0, 1, 2, 3, 5, 7, 8, 63, 64, 65, 1000003};
enum { COUNTS = sizeof counts / sizeof *counts };

/* Chunks [first, first + parts) are the @p count elements from @p offset on. */
static void check_cut(const plan_layout *layout, plan_buffer buffer, int first, int parts,
                      size_t offset)
{
    size_t at = offset, longest = 0, shortest = SIZE_MAX, before = SIZE_MAX;
    for (int i = 0; i < parts; i++) {
        const plan_span span = plan_span_of(layout, buffer, first + i, 1);
        assert_int_equal(span.offset, at);
        assert_true(span.count <= before);
        before = span.count;
        longest = span.count > longest ? span.count : longest;
        shortest = span.count < shortest ? span.count : shortest;
        at += span.count;
    }
    assert_int_equal(at - offset, layout->count);
    assert_true(longest - shortest <= 1);
}

static void whole_vectors_are_cut_evenly_longer_chunks_first(void **state)
{
    static const plan_collective whole[] = {PLAN_ALL_REDUCE, PLAN_BROADCAST, PLAN_REDUCE};
    (void)state;
    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < COUNTS; i++) {
            for (int chunks = 1; chunks <= 70; chunks += 3) {
                const plan_layout layout = {whole[c], 5, chunks, counts[i]};
                check_cut(&layout, PLAN_SRC, 0, chunks, 0);
                check_cut(&layout, PLAN_DST, 0, chunks, 0);
            }
        }
    }
}

static void check_blocks(const plan_layout *layout, plan_buffer all, plan_buffer own)
{
    const int parts = layout->chunks / layout->ranks;
    for (int block = 0; block < layout->ranks; block++) {
        check_cut(layout, all, block * parts, parts, (size_t)block * layout->count);
        check_cut(layout, own, block * parts, parts, 0);
    }
}

static void blocks_lie_one_behind_the_other_and_alone_at_the_start(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++) {
        for (int ranks = 1; ranks <= 9; ranks++) {
            for (int parts = 1; parts <= 4; parts++) {
                const plan_layout scatter = {PLAN_REDUCE_SCATTER, ranks, ranks * parts, counts[i]};
                const plan_layout gather = {PLAN_ALL_GATHER, ranks, ranks * parts, counts[i]};
                check_blocks(&scatter, PLAN_SRC, PLAN_DST);
                check_blocks(&gather, PLAN_DST, PLAN_SRC);
            }
        }
    }
}

static void a_message_is_as_long_as_its_chunk(void **state)
{
    (void)state;
    for (int c = 0; c < PLAN_COLLECTIVE_COUNT; c++) {
        const plan_layout layout = {(plan_collective)c, 3, 6, 17};
        for (int chunk = 0; chunk < 6; chunk++)
            assert_int_equal(plan_span_of(&layout, PLAN_WIRE, chunk, 1).count,
                             plan_span_of(&layout, PLAN_SRC, chunk, 1).count);
    }
}

/* A range begins where its first chunk does and ends where its last one does. */
static void ranges_are_their_chunks_together(void **state)
{
    static const plan_buffer buffers[] = {PLAN_SRC, PLAN_DST, PLAN_SCRATCH};
    (void)state;
    for (int c = 0; c <= PLAN_REDUCE; c++) {
        const plan_layout layout = {(plan_collective)c, 3, 6, 17};
        for (int b = 0; b < 3; b++) {
            for (int first = 0; first < 6; first += 2) { /* ranges that are in one block */
                const plan_span whole = plan_span_of(&layout, buffers[b], first, 2);
                const plan_span one = plan_span_of(&layout, buffers[b], first, 1);
                const plan_span other = plan_span_of(&layout, buffers[b], first + 1, 1);
                assert_int_equal(whole.offset, one.offset);
                assert_int_equal(whole.count, one.count + other.count);
                assert_int_equal(other.offset, one.offset + one.count);
            }
        }
    }
}

static void scratch_lies_as_the_vector_does(void **state)
{
    const plan_layout scatter = {PLAN_REDUCE_SCATTER, 3, 6, 17};
    (void)state;
    for (int chunk = 0; chunk < 6; chunk++) {
        assert_int_equal(plan_span_of(&scatter, PLAN_SCRATCH, chunk, 1).offset,
                         plan_span_of(&scatter, PLAN_SRC, chunk, 1).offset);
    }
    assert_int_equal(plan_span_of(&scatter, PLAN_SRC, 1, 4).count, 8 + 17 + 9);
}

static void a_message_between_two_ranks_is_one_chunk(void **state)
{
    const plan_layout layout = {PLAN_SEND, 4, 1, 12345};
    const plan_span span = plan_span_of(&layout, PLAN_SRC, 0, 1);
    (void)state;
    assert_int_equal(span.offset, 0);
    assert_int_equal(span.count, 12345);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_vectors_are_cut_evenly_longer_chunks_first),
        cmocka_unit_test(blocks_lie_one_behind_the_other_and_alone_at_the_start),
        cmocka_unit_test(a_message_is_as_long_as_its_chunk),
        cmocka_unit_test(ranges_are_their_chunks_together),
        cmocka_unit_test(scratch_lies_as_the_vector_does),
        cmocka_unit_test(a_message_between_two_ranks_is_one_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
