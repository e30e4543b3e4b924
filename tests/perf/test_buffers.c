/* SPDX-License-Identifier: Apache-2.0
 * The check of one call: right outputs pass in every shape, and each way to be wrong counts. */
#include "buffers.h"

#include <string.h>

#include "unit_test.h"

#define RANKS 3
#define RANK 1
#define COUNT 100
#define REPETITION 4

static perf_buffers buffers;

static int open_buffers(void **state)
{
    return perf_buffers_open(&buffers, RANKS * COUNT * sizeof(float), PERF_PLAIN, NULL) != RING_OK;
}

static int close_buffers(void **state)
{
    perf_buffers_close(&buffers);
    return 0;
}

static perf_case make_case(const char *name, bool in_place)
{
    return (perf_case){.collective = perf_collective_find(name),
                       .dtype = RING_FLOAT32,
                       .op = RING_SUM,
                       .root = 0,
                       .rank = RANK,
                       .ranks = RANKS,
                       .count = COUNT,
                       .in_place = in_place};
}

/* Writes the right output: the inputs of all ranks, combined or copied. */
static void write_right(const perf_case *c, perf_place place)
{
    const perf_oracle oracle = {c->dtype, c->op, c->ranks, REPETITION};
    const int blocks = c->collective->dst_blocks ? RANKS : 1;
    for (int block = 0; block < blocks; block++) {
        const perf_expect expect = c->collective->expect(c, block);
        float sum[COUNT] = {0}, part[COUNT];
        for (int rank = expect.first_rank; rank < expect.first_rank + expect.ranks; rank++) {
            perf_oracle_fill(&oracle, rank, expect.first_index, COUNT, part);
            for (size_t i = 0; i < COUNT; i++)
                sum[i] += part[i];
        }
        if (expect.ranks > 0)
            memcpy(place.dst + (size_t)block * sizeof sum, sum, sizeof sum);
    }
}

#define NOTHING PTRDIFF_MAX

/* @param spoil_at  byte of an operand that something else writes to. */
static perf_wrong check_after(const perf_case *c, int unalign, ptrdiff_t spoil_at, bool spoil_src)
{
    perf_wrong wrong = {0};
    (void)perf_prepare_check(&buffers, c, unalign, REPETITION);
    const perf_place place = perf_place_of(&buffers, c, unalign);
    write_right(c, place);
    if (spoil_at != NOTHING)
        (spoil_src ? place.src : place.dst)[spoil_at] ^= 0x10;
    (void)perf_check(&buffers, c, unalign, REPETITION, &wrong);
    return wrong;
}

static void right_outputs_pass_in_every_shape(void **state)
{
    for (size_t i = 0; perf_collective_at(i); i++)
        for (int way = 0; way < 4; way++) {
            perf_case c = make_case(perf_collective_at(i)->name, way & 1);
            c.root = way / 2;
            if (c.collective->empty)
                c.count = 0;
            if (c.collective->empty || (c.in_place && c.collective->apart))
                continue;
            const perf_wrong wrong = check_after(&c, way, NOTHING, false);
            assert_int_equal(wrong.elements, 0);
            assert_int_equal(wrong.out_of_bounds, 0);
        }
}

static void an_output_that_was_not_written_is_all_wrong(void **state)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        const perf_case c = make_case("all_reduce", in_place);
        perf_wrong wrong = {0};
        (void)perf_prepare_check(&buffers, &c, 0, REPETITION);
        (void)perf_check(&buffers, &c, 0, REPETITION, &wrong);
        assert_true(wrong.elements > COUNT * 9 / 10);
    }
}

static void one_bad_byte_in_an_output_is_one_wrong_element(void **state)
{
    static const char *const names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                        "scatter",    "scan",           "exscan"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int in_place = 0; in_place < 2; in_place++) {
            const perf_case c = make_case(names[i], in_place);
            const perf_wrong wrong = check_after(&c, 0, 4 * COUNT - 1, false);
            assert_int_equal(wrong.elements, 1);
            assert_int_equal(wrong.out_of_bounds, 0);
        }
}

static void a_changed_input_is_wrong(void **state)
{
    const perf_case c = make_case("all_reduce", false), blocks = make_case("reduce_scatter", true);
    assert_int_equal(check_after(&c, 0, 0, true).elements, 1);
    assert_int_equal(check_after(&blocks, 0, 0, true).elements, 1); /* another rank's block */
    assert_int_equal(check_after(&blocks, 0, 4 * (3 * COUNT - 1), true).elements, 1);
}

static void a_write_to_a_rank_that_is_not_the_root_is_wrong(void **state)
{
    const perf_case out = make_case("reduce", false), in = make_case("reduce", true);
    assert_int_equal(check_after(&out, 0, 5, false).elements, 1);
    assert_int_equal(check_after(&in, 0, 5, false).elements, 1);
    const perf_case apart = make_case("gather", false), together = make_case("gather", true);
    for (int block = 0; block < RANKS; block++) {
        assert_int_equal(check_after(&apart, 0, 4 * COUNT * block + 5, false).elements, 1);
        assert_int_equal(check_after(&together, 0, 4 * COUNT * block + 5, false).elements, 1);
    }
}

static void writes_before_and_after_are_out_of_bounds(void **state)
{
    const perf_case c = make_case("all_reduce", false);
    for (int unalign = 0; unalign < 4; unalign += 3) {
        assert_int_equal(check_after(&c, unalign, -4, false).out_of_bounds, 1);
        assert_int_equal(check_after(&c, unalign, 4 * COUNT, false).out_of_bounds, 1);
        const ptrdiff_t last = 4 * COUNT + PERF_GUARD - 1;
        assert_int_equal(check_after(&c, unalign, last, true).out_of_bounds, 1);
        assert_int_equal(check_after(&c, unalign, 4 * COUNT, false).elements, 0);
    }
}

static void in_place_operands_lie_where_the_header_says(void **state)
{
    const perf_case all = make_case("all_reduce", true), gather = make_case("all_gather", true),
                    scatter = make_case("reduce_scatter", true);
    perf_place place = perf_place_of(&buffers, &all, 0);
    assert_ptr_equal(place.src, place.dst);
    place = perf_place_of(&buffers, &scatter, 0);
    assert_ptr_equal(place.dst, place.src + RANK * COUNT * sizeof(float));
    place = perf_place_of(&buffers, &gather, 0);
    assert_ptr_equal(place.src, place.dst + RANK * COUNT * sizeof(float));
}

static void data_is_page_aligned_unless_moved(void **state)
{
    const perf_case c = make_case("all_reduce", false);
    const perf_place place = perf_place_of(&buffers, &c, 0), moved = perf_place_of(&buffers, &c, 3);
    assert_int_equal((uintptr_t)place.src % 4096, 0);
    assert_int_equal((uintptr_t)place.dst % 4096, 0);
    assert_ptr_equal(moved.dst, place.dst + 3 * sizeof(float));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_outputs_pass_in_every_shape),
        cmocka_unit_test(an_output_that_was_not_written_is_all_wrong),
        cmocka_unit_test(one_bad_byte_in_an_output_is_one_wrong_element),
        cmocka_unit_test(a_changed_input_is_wrong),
        cmocka_unit_test(a_write_to_a_rank_that_is_not_the_root_is_wrong),
        cmocka_unit_test(writes_before_and_after_are_out_of_bounds),
        cmocka_unit_test(in_place_operands_lie_where_the_header_says),
        cmocka_unit_test(data_is_page_aligned_unless_moved),
    };
    return cmocka_run_group_tests(tests, open_buffers, close_buffers);
}
