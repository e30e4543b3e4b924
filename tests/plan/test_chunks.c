/* SPDX-License-Identifier: Apache-2.0
 * Layouts: chunks cover the vector once, in order, and differ by at most one element. */
#include "algo.h"
#include "plan.h"

#include "unit_test.h"

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
    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < COUNTS; i++) {
            for (int chunks = 1; chunks <= 70; chunks += 3) {
                const plan_layout layout = {whole[c], 5, chunks, counts[i], NULL};
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
    for (int i = 0; i < COUNTS; i++) {
        for (int ranks = 1; ranks <= 9; ranks++) {
            for (int parts = 1; parts <= 4; parts++) {
                const plan_layout scatter = {PLAN_REDUCE_SCATTER, ranks, ranks * parts, counts[i],
                                             NULL};
                const plan_layout gather = {PLAN_ALL_GATHER, ranks, ranks * parts, counts[i], NULL};
                check_blocks(&scatter, PLAN_SRC, PLAN_DST);
                check_blocks(&gather, PLAN_DST, PLAN_SRC);
            }
        }
    }
}

/* Block s * ranks + d lies in the src of s in the order of d, in the dst of d in that of s. */
static void blocks_of_pairs_lie_in_the_order_of_the_other_end(void **state)
{
    for (int i = 0; i < COUNTS; i++) {
        for (int ranks = 1; ranks <= 5; ranks++) {
            for (int parts = 1; parts <= 3; parts++) {
                const plan_layout layout = {PLAN_ALL_TO_ALL, ranks, ranks * ranks * parts,
                                            counts[i], NULL};
                for (int from = 0; from < ranks; from++) {
                    for (int to = 0; to < ranks; to++) {
                        const int first = (from * ranks + to) * parts;
                        check_cut(&layout, PLAN_SRC, first, parts, (size_t)to * counts[i]);
                        check_cut(&layout, PLAN_DST, first, parts, (size_t)from * counts[i]);
                    }
                }
            }
        }
    }
}

static void a_message_is_as_long_as_its_chunk(void **state)
{
    for (int c = 0; c < PLAN_COLLECTIVE_COUNT; c++) {
        const plan_layout layout = {(plan_collective)c, 3, 18, 17, NULL};
        for (int chunk = 0; chunk < 18; chunk++)
            assert_int_equal(plan_span_of(&layout, PLAN_WIRE, chunk, 1).count,
                             plan_span_of(&layout, PLAN_SRC, chunk, 1).count);
    }
}

/* A range begins where its first chunk does and ends where its last one does. */
static void ranges_are_their_chunks_together(void **state)
{
    static const plan_buffer buffers[] = {PLAN_SRC, PLAN_DST, PLAN_SCRATCH};
    for (int c = 0; c < PLAN_BARRIER; c++) {
        const plan_layout layout = {(plan_collective)c, 3, 18, 17, NULL};
        for (int b = 0; b < 3; b++) {
            for (int first = 0; first < 18; first += 2) { /* ranges that are in one block */
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
    const plan_layout scatter = {PLAN_REDUCE_SCATTER, 3, 6, 17, NULL};
    for (int chunk = 0; chunk < 6; chunk++) {
        assert_int_equal(plan_span_of(&scatter, PLAN_SCRATCH, chunk, 1).offset,
                         plan_span_of(&scatter, PLAN_SRC, chunk, 1).offset);
    }
    assert_int_equal(plan_span_of(&scatter, PLAN_SRC, 1, 4).count, 8 + 17 + 9);
}

static void a_message_between_two_ranks_is_one_chunk(void **state)
{
    const plan_layout layout = {PLAN_SEND, 4, 1, 12345, NULL};
    const plan_span span = plan_span_of(&layout, PLAN_SRC, 0, 1);
    assert_int_equal(span.offset, 0);
    assert_int_equal(span.count, 12345);
}

/* Rank 1 of 3, two chunks a block. */
static void blocks_of_own_lengths_are_cut_where_they_lie(void **state)
{
    const size_t src_counts[3] = {4, 0, 7}, src_at[3] = {20, 0, 3}, dst_counts[3] = {5, 0, 9},
                 dst_at[3] = {1, 99, 40};
    const plan_shape shape = {.rank = 1,
                              .counts = {src_counts, dst_counts},
                              .displs = {src_at, dst_at}};
    const plan_layout pairs = {PLAN_ALL_TO_ALL, 3, 18, 0, &shape};
    for (int i = 0; i < 3; i++) {
        const int given = 2 * (1 * 3 + i), taken = 2 * (i * 3 + 1);
        const plan_span first = plan_span_of(&pairs, PLAN_SRC, given, 1),
                        second = plan_span_of(&pairs, PLAN_SRC, given + 1, 1);
        assert_int_equal(first.offset, src_at[i]);
        assert_int_equal(first.count, (src_counts[i] + 1) / 2);
        assert_int_equal(second.offset, src_at[i] + first.count);
        assert_int_equal(second.count, src_counts[i] / 2);
        const plan_span whole = plan_span_of(&pairs, PLAN_DST, taken, 2);
        assert_int_equal(whole.offset, dst_at[i]);
        assert_int_equal(whole.count, dst_counts[i]);
        assert_int_equal(plan_span_of(&pairs, PLAN_WIRE, taken, 2).count, dst_counts[i]);
    }
}

/* A rank that is not the root knows its own block alone. */
static void a_block_of_its_own_length_begins_its_buffer(void **state)
{
    const plan_shape shape = {.rank = 2, .own = 11};
    const plan_layout gather = {PLAN_GATHER, 4, 4, 0, &shape};
    const plan_span span = plan_span_of(&gather, PLAN_SRC, 2, 1);
    assert_int_equal(span.offset, 0);
    assert_int_equal(span.count, 11);
}

/* The promise of `by_block` about a plan's locations. */
static bool lies_in_a_block(const plan *p, plan_loc loc)
{
    const int parts = p->chunks / plan_blocks(p->collective, p->ranks);
    return loc.chunk / parts == (loc.chunk + loc.chunks - 1) / parts;
}

static bool is_by_block(const plan *p)
{
    bool right = p->scratch_chunks == 0;
    for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at)) {
        const plan_step *step = plan_at(&at);
        for (int i = 0; i < step->ins; i++)
            right &= lies_in_a_block(p, plan_input(&at, step, i));
        for (int i = 0; i < step->outs; i++)
            right &= lies_in_a_block(p, plan_output(&at, step, i));
    }
    return right;
}

static void operands_of_plans_for_uneven_blocks_lie_in_one_block(void **state)
{
    size_t algorithms, plans = 0;
    const algo *all = algo_all(&algorithms);
    for (size_t i = 0; i < algorithms; i++)
        for (int c = 0; c < PLAN_COLLECTIVE_COUNT; c++)
            for (int ranks = 1; ranks <= 6; ranks++) {
                const plan_world world = {.ranks = ranks, .hosts = 1};
                const plan_collective even = plan_collective_planned((plan_collective)c);
                if (even == (plan_collective)c || !algo_serves(&all[i], (plan_collective)c, &world))
                    continue;
                const algo_call call = {.collective = even,
                                        .world = &world,
                                        .rank = ranks / 2,
                                        .chunks = 2 * all[i].chunks(even, &world, 0)};
                plan *p = all[i].build(&call);
                assert_non_null(p);
                assert_true(is_by_block(p));
                plan_free(p);
                plans++;
            }
    /* all_gather_v by three algorithms, reduce_scatter_v by four, blocks of pairs by one */
    assert_int_equal(plans, 6 * (3 + 4 + 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_vectors_are_cut_evenly_longer_chunks_first),
        cmocka_unit_test(blocks_lie_one_behind_the_other_and_alone_at_the_start),
        cmocka_unit_test(blocks_of_pairs_lie_in_the_order_of_the_other_end),
        cmocka_unit_test(a_message_is_as_long_as_its_chunk),
        cmocka_unit_test(ranges_are_their_chunks_together),
        cmocka_unit_test(scratch_lies_as_the_vector_does),
        cmocka_unit_test(a_message_between_two_ranks_is_one_chunk),
        cmocka_unit_test(blocks_of_own_lengths_are_cut_where_they_lie),
        cmocka_unit_test(a_block_of_its_own_length_begins_its_buffer),
        cmocka_unit_test(operands_of_plans_for_uneven_blocks_lie_in_one_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
