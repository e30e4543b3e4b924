/* SPDX-License-Identifier: Apache-2.0
 * The oracle accepts what plain arithmetic gives in any order, and nothing else. */
#include "expected.h"

#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

#define COUNT 5000

static float inputs[8][COUNT], result[COUNT];

static void fill_all(const perf_oracle *oracle)
{
    for (int rank = 0; rank < oracle->ranks; rank++)
        perf_oracle_fill(oracle, rank, 0, COUNT, inputs[rank]);
}

static void a_sum_is_the_same_in_every_order(void **state)
{
    const perf_oracle oracle = {RING_FLOAT32, RING_SUM, 8, 5};
    fill_all(&oracle);
    for (int first = 0; first < 8; first++) {
        memcpy(result, inputs[first], sizeof result);
        for (int step = 1; step < 8; step++)
            for (size_t i = 0; i < COUNT; i++)
                result[i] += inputs[(first + 3 * step) % 8][i];
        assert_int_equal(perf_oracle_check_reduced(&oracle, 0, COUNT, result), 0);
    }
}

static void a_product_is_the_same_in_every_order(void **state)
{
    const perf_oracle oracle = {RING_FLOAT32, RING_PROD, 8, 5};
    fill_all(&oracle);
    for (size_t i = 0; i < COUNT; i++) {
        result[i] = 1;
        for (int rank = 7; rank >= 0; rank--)
            result[i] *= inputs[rank][i];
    }
    assert_int_equal(perf_oracle_check_reduced(&oracle, 0, COUNT, result), 0);
}

static void a_mean_is_a_quotient_not_a_product_with_the_reciprocal(void **state)
{
    const perf_oracle oracle = {RING_FLOAT32, RING_AVG, 7, 5};
    fill_all(&oracle);
    for (int divides = 0; divides < 2; divides++) {
        for (size_t i = 0; i < COUNT; i++) {
            float sum = 0;
            for (int rank = 0; rank < 7; rank++)
                sum += inputs[rank][i];
            result[i] = divides ? sum / 7 : sum * (1.0f / 7);
        }
        assert_int_equal(perf_oracle_check_reduced(&oracle, 0, COUNT, result) == 0, divides);
    }
}

static void least_and_most_compare_as_the_type_does(void **state)
{
    int8_t narrow[3][COUNT], least[COUNT];
    uint8_t bytes[3][COUNT], most[COUNT];
    const perf_oracle low = {RING_INT8, RING_MIN, 3, 1}, high = {RING_UINT8, RING_MAX, 3, 1};
    for (int rank = 0; rank < 3; rank++) {
        perf_oracle_fill(&low, rank, 0, COUNT, narrow[rank]);
        perf_oracle_fill(&high, rank, 0, COUNT, bytes[rank]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        least[i] = narrow[0][i];
        most[i] = bytes[0][i];
        for (int rank = 1; rank < 3; rank++) {
            least[i] = narrow[rank][i] < least[i] ? narrow[rank][i] : least[i];
            most[i] = bytes[rank][i] > most[i] ? bytes[rank][i] : most[i];
        }
    }
    assert_int_equal(perf_oracle_check_reduced(&low, 0, COUNT, least), 0);
    assert_int_equal(perf_oracle_check_reduced(&high, 0, COUNT, most), 0);
}

static void integers_wrap_and_their_mean_goes_towards_zero(void **state)
{
    int8_t in[3][COUNT], sums[COUNT], means[COUNT];
    perf_oracle oracle = {RING_INT8, RING_SUM, 3, 1};
    for (int rank = 0; rank < 3; rank++)
        perf_oracle_fill(&oracle, rank, 0, COUNT, in[rank]);
    for (size_t i = 0; i < COUNT; i++) {
        sums[i] = (int8_t)(uint8_t)(in[0][i] + in[1][i] + in[2][i]);
        means[i] = (int8_t)(sums[i] / 3);
    }
    assert_int_equal(perf_oracle_check_reduced(&oracle, 0, COUNT, sums), 0);
    oracle.op = RING_AVG;
    assert_int_equal(perf_oracle_check_reduced(&oracle, 0, COUNT, means), 0);
}

static void make_sum(const perf_oracle *oracle)
{
    fill_all(oracle);
    memset(result, 0, sizeof result);
    for (int rank = 0; rank < oracle->ranks; rank++)
        for (size_t i = 0; i < COUNT; i++)
            result[i] += inputs[rank][i];
}

static void one_flipped_bit_anywhere_is_one_wrong_value(void **state)
{
    const perf_oracle oracle = {RING_FLOAT32, RING_SUM, 4, 2};
    make_sum(&oracle);
    unsigned char *bytes = (unsigned char *)result;
    for (size_t at = 0; at < sizeof result; at += 997) {
        bytes[at] ^= 1u << at % 8;
        assert_int_equal(perf_oracle_check_reduced(&oracle, 0, COUNT, result), 1);
        bytes[at] ^= 1u << at % 8;
    }
    assert_int_equal(perf_oracle_check_reduced(&oracle, 0, COUNT, result), 0);
}

static void a_missing_or_doubled_rank_shows(void **state)
{
    const perf_oracle oracle = {RING_FLOAT32, RING_SUM, 4, 2};
    make_sum(&oracle);
    for (size_t i = 0; i < COUNT; i++)
        result[i] -= inputs[2][i];
    assert_true(perf_oracle_check_reduced(&oracle, 0, COUNT, result) > COUNT * 9 / 10);
    for (size_t i = 0; i < COUNT; i++)
        result[i] += 2 * inputs[2][i];
    assert_true(perf_oracle_check_reduced(&oracle, 0, COUNT, result) > COUNT * 9 / 10);
}

static void shifted_stale_and_foreign_data_show(void **state)
{
    const perf_oracle now = {RING_FLOAT32, RING_SUM, 4, 2}, before = {RING_FLOAT32, RING_SUM, 4, 1};
    const size_t most = COUNT * 9 / 10;
    perf_oracle_fill(&now, 1, 0, COUNT, result);
    assert_int_equal(perf_oracle_check_copy(&now, 1, 0, COUNT, result), 0);
    assert_true(perf_oracle_check_copy(&now, 2, 0, COUNT, result) > most);
    assert_true(perf_oracle_check_copy(&before, 1, 0, COUNT, result) > most);
    for (size_t shift = 1; shift < COUNT; shift *= 2)
        assert_true(perf_oracle_check_copy(&now, 1, shift, COUNT, result) > most);
}

static void an_input_does_not_depend_on_how_it_is_cut(void **state)
{
    for (int dtype = 0; dtype < RING_DTYPE_COUNT; dtype++) {
        const perf_oracle oracle = {(ring_dtype)dtype, RING_SUM, 3, 9};
        const size_t size = ring_dtype_size(oracle.dtype);
        unsigned char whole[1000 * 8], parts[1000 * 8];
        perf_oracle_fill(&oracle, 1, 77, 1000, whole);
        perf_oracle_fill(&oracle, 1, 77, 333, parts);
        perf_oracle_fill(&oracle, 1, 77 + 333, 667, parts + 333 * size);
        assert_memory_equal(whole, parts, 1000 * size);
    }
}

static void no_elements_are_never_wrong(void **state)
{
    const perf_oracle oracle = {RING_FLOAT32, RING_SUM, 4, 2};
    assert_int_equal(perf_oracle_check_reduced(&oracle, 0, 0, NULL), 0);
    assert_int_equal(perf_oracle_check_copy(&oracle, 0, 0, 0, NULL), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_is_the_same_in_every_order),
        cmocka_unit_test(a_product_is_the_same_in_every_order),
        cmocka_unit_test(a_mean_is_a_quotient_not_a_product_with_the_reciprocal),
        cmocka_unit_test(least_and_most_compare_as_the_type_does),
        cmocka_unit_test(integers_wrap_and_their_mean_goes_towards_zero),
        cmocka_unit_test(one_flipped_bit_anywhere_is_one_wrong_value),
        cmocka_unit_test(a_missing_or_doubled_rank_shows),
        cmocka_unit_test(shifted_stale_and_foreign_data_show),
        cmocka_unit_test(an_input_does_not_depend_on_how_it_is_cut),
        cmocka_unit_test(no_elements_are_never_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
