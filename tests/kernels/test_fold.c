/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_fold() and kernel_copy() against the oracle, bit by bit: types, operations, numbers
 * of arrays, counts, places in memory, outputs that are inputs, stores around the cache. */

#include "unit_test.h"

#include "kernel_oracle.h"
#include "simd_level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INS = 8,
    OUTS = 8,
    OUTS_SWEPT = 3,
    COUNT = 1037,
    GUARD = 64,
    ARRAY = GUARD + 8 * (COUNT + 8) + GUARD,
    GUARD_BYTE = 0xa5,
};

typedef enum alias { ALIAS_NONE, ALIAS_EACH, ALIAS_LAST, ALIAS_KINDS } alias;

typedef struct fold_case {
    ring_dtype dtype;
    ring_op op;
    int in_count, out_count, divisor;
    bool wide_in[INS], wide_out[OUTS]; /* the accumulator flags */
    size_t count;
    size_t shift; /* of every array, in elements; each array another one */
    alias alias;
} fold_case;

/* The inputs as given, the arrays that the kernel sees, and the outputs by the oracle, in
 * the call's type and in the accumulator's. */
static _Alignas(64) unsigned char given[INS][ARRAY], ins[INS][ARRAY], outs[OUTS][ARRAY];
static _Alignas(64) unsigned char expected[2][ARRAY];

static const char *describe(const fold_case *c)
{
    static char text[160];
    snprintf(
        text, sizeof text,
        "dtype %d op %d ins %d outs %d divisor %d count %zu shift %zu alias %d wide in %d out %d",
        c->dtype, c->op, c->in_count, c->out_count, c->divisor, c->count, c->shift, c->alias,
        c->wide_in[0], c->wide_out[0]);
    return text;
}

/* No arithmetic and no cast: even the payload of a NaN is kept. */
static bool is_copy(const fold_case *c)
{
    bool same = true;
    for (int k = 0; k < OUTS; k++)
        same = same && (!oracle_is_half(c->dtype) || c->wide_out[k] == c->wide_in[0]);
    return c->in_count == 1 && c->divisor == 0 && !kernel_is_logical(c->op) && same;
}

static void make_inputs(const fold_case *c, uint64_t *state)
{
    kernel_operand operands[INS];
    for (int k = 0; k < c->in_count; k++) {
        operands[k] = (kernel_operand){.data = given[k], .accumulator = c->wide_in[k]};
        oracle_fill(given[k], c->count, c->dtype, c->wide_in[k], state);
    }
    for (size_t i = 0; i < c->count; i++)
        for (int wide = 0; wide < 2; wide++)
            oracle_fold(expected[wide] + i * oracle_size(c->dtype, wide), wide, operands,
                        c->in_count, i, c->dtype, c->op, c->divisor);
    if (is_copy(c))
        memcpy(expected[c->wide_in[0]], given[0], c->count * oracle_size(c->dtype, c->wide_in[0]));
}

/* The input that output @p k is, or -1. */
static int aliased_input(const fold_case *c, int k)
{
    int in = -1;
    if (c->alias == ALIAS_EACH && k < c->in_count)
        in = k;
    if (c->alias == ALIAS_LAST && k == 0)
        in = c->in_count - 1;
    return in >= 0 && c->wide_in[in] == c->wide_out[k] ? in : -1;
}

static void guard(unsigned char *data, size_t bytes)
{
    memset(data - GUARD, GUARD_BYTE, GUARD);
    memset(data + bytes, GUARD_BYTE, GUARD);
}

static bool guarded(const unsigned char *data, size_t bytes)
{
    for (size_t i = 0; i < GUARD; i++)
        if (data[bytes + i] != GUARD_BYTE || *(data - GUARD + i) != GUARD_BYTE)
            return false;
    return true;
}

static void check_array(const fold_case *c, const kernel_operand *array, const unsigned char *want)
{
    const size_t bytes = c->count * oracle_size(c->dtype, array->accumulator);
    if (memcmp(array->data, want, bytes) != 0)
        fail_msg("wrong bits: %s", describe(c));
    if (!guarded(array->data, bytes))
        fail_msg("wrote outside the array: %s", describe(c));
}

static kernel_operand make_array(const fold_case *c, unsigned char *array, int k, bool wide)
{
    const size_t elements = c->shift == 0 ? 0 : (c->shift + (size_t)k) % 8;
    const size_t size = oracle_size(c->dtype, wide);
    kernel_operand operand = {.data = array + GUARD + elements * size, .accumulator = wide};
    guard(operand.data, c->count * size);
    return operand;
}

static void run_case(const fold_case *c)
{
    kernel_operand in[INS], out[OUTS];
    bool overwritten[INS] = {false};
    for (int k = 0; k < c->in_count; k++) {
        in[k] = make_array(c, ins[k], k, c->wide_in[k]);
        memcpy(in[k].data, given[k], c->count * oracle_size(c->dtype, c->wide_in[k]));
    }
    for (int k = 0; k < c->out_count; k++) {
        const int same = aliased_input(c, k);
        out[k] = same < 0 ? make_array(c, outs[k], INS + k, c->wide_out[k]) : in[same];
        if (same >= 0)
            overwritten[same] = true;
        else
            memset(out[k].data, GUARD_BYTE, c->count * oracle_size(c->dtype, c->wide_out[k]));
    }
    kernel_fold(out, c->out_count, in, c->in_count, c->count, c->dtype, c->op, c->divisor);
    for (int k = 0; k < c->out_count; k++)
        check_array(c, &out[k], expected[c->wide_out[k]]);
    for (int k = 0; k < c->in_count; k++)
        if (!overwritten[k])
            check_array(c, &in[k], given[k]);
}

/* All places, aliases and numbers of outputs for one set of inputs. */
static void run_placements(fold_case c)
{
    static const size_t shifts[] = {0, 1, 3};
    for (c.out_count = 1; c.out_count <= OUTS_SWEPT; c.out_count++)
        for (size_t s = 0; s < sizeof shifts / sizeof *shifts; s++)
            for (c.alias = ALIAS_NONE; c.alias < ALIAS_KINDS; c.alias++) {
                c.shift = shifts[s];
                run_case(&c);
            }
}

static void run_inputs(fold_case c, uint64_t *state)
{
    static const size_t counts[] = {0, 1, 7, 63, 64, 65, 1000, COUNT};
    static const int numbers[] = {1, 2, 3, 5, INS};
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            c.in_count = numbers[n];
            c.count = counts[i];
            make_inputs(&c, state);
            run_placements(c);
        }
}

static void run_op(fold_case c, uint64_t *state)
{
    static const int divisors[] = {0, 1, 3, 4, 300};
    const size_t most = c.op == RING_AVG ? sizeof divisors / sizeof *divisors : 1;
    for (size_t d = 0; d < most; d++) {
        c.divisor = divisors[d];
        run_inputs(c, state);
    }
}

static void test_every_type_and_operation_gives_the_oracles_bits(void **cmocka_state)
{
    uint64_t state = 1;
    for (ring_dtype dtype = 0; dtype < RING_DTYPE_COUNT; dtype++)
        for (ring_op op = 0; op < RING_OP_COUNT; op++)
            if (ring_op_serves(op, dtype))
                run_op((fold_case){.dtype = dtype, .op = op}, &state);
}

static void test_accumulator_operands_mix_with_halves(void **cmocka_state)
{
    static const ring_dtype dtypes[] = {RING_FLOAT16, RING_BFLOAT16, RING_FLOAT8_E4M3,
                                        RING_FLOAT8_E5M2};
    static const struct {
        bool in[2], out[2];
    } mixes[] = {
        /* even and odd arrays */
        {{true, false}, {false, false}}, {{false, false}, {true, true}},
        {{false, true}, {true, false}},  {{true, true}, {false, false}},
        {{true, true}, {true, true}},
    };
    uint64_t state = 2;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t m = 0; m < sizeof mixes / sizeof *mixes; m++)
            for (int op = 0; op <= RING_AVG; op += 2) { /* sum, max, avg */
                fold_case c = {.dtype = dtypes[d], .op = (ring_op)op};
                for (int k = 0; k < INS; k++)
                    c.wide_in[k] = mixes[m].in[k % 2];
                for (int k = 0; k < OUTS; k++)
                    c.wide_out[k] = mixes[m].out[k % 2];
                run_op(c, &state);
            }
}

static void test_as_many_outputs_as_inputs_in_place_and_not(void **cmocka_state)
{
    uint64_t state = 6;
    for (ring_dtype dtype = 0; dtype < RING_DTYPE_COUNT; dtype++)
        for (int n = 1; n <= INS; n++)
            for (size_t count = 0; count <= COUNT; count += count < 40 ? 13 : 331) {
                fold_case c = {.dtype = dtype,
                               .op = RING_AVG,
                               .in_count = n,
                               .out_count = n,
                               .divisor = n,
                               .count = count,
                               .shift = count % 3};
                make_inputs(&c, &state);
                for (c.alias = ALIAS_NONE; c.alias < ALIAS_KINDS; c.alias++)
                    run_case(&c);
            }
}

static void test_accumulator_flag_is_ignored_for_other_types(void **cmocka_state)
{
    int32_t a[5] = {1, 2, 3, 4, 5}, sum[5] = {0};
    double b[5] = {1, 2, 3, 4, 5}, total[5] = {0};
    kernel_fold(&(kernel_operand){.data = sum, .accumulator = true}, 1,
                (kernel_operand[]){{.data = a, .accumulator = true}, {.data = a}}, 2, 5, RING_INT32,
                RING_SUM, 0);
    kernel_fold(&(kernel_operand){.data = total, .accumulator = true}, 1,
                (kernel_operand[]){{.data = b, .accumulator = true}, {.data = b}}, 2, 5,
                RING_FLOAT64, RING_SUM, 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(sum[i], 2 * a[i]);
        assert_true(total[i] == 2 * b[i]);
    }
}

static void test_most_arrays_fold_left_to_right(void **cmocka_state)
{
    enum { N = 70 };
    static float in_data[KERNEL_MAX_INPUTS][N], out_data[KERNEL_MAX_OUTPUTS][N];
    kernel_operand in[KERNEL_MAX_INPUTS], out[KERNEL_MAX_OUTPUTS];
    uint64_t state = 3;
    for (int k = 0; k < KERNEL_MAX_INPUTS; k++) {
        in[k] = (kernel_operand){.data = in_data[k]};
        oracle_fill(in_data[k], N, RING_FLOAT32, false, &state);
    }
    for (int k = 0; k < KERNEL_MAX_OUTPUTS; k++)
        out[k] = (kernel_operand){.data = out_data[k]};
    kernel_fold(out, KERNEL_MAX_OUTPUTS, in, KERNEL_MAX_INPUTS, N, RING_FLOAT32, RING_SUM, 0);
    for (size_t i = 0; i < N; i++) {
        float want;
        oracle_fold(&want, false, in, KERNEL_MAX_INPUTS, i, RING_FLOAT32, RING_SUM, 0);
        for (int k = 0; k < KERNEL_MAX_OUTPUTS; k++)
            assert_memory_equal(&out_data[k][i], &want, sizeof want);
    }
}

/* ---- Sizes that are stored around the cache ---- */

enum { LARGE = 3 << 20, LARGE_SPARE = 256 };

static float *large_array(uint64_t *state)
{
    float *x = malloc((LARGE + LARGE_SPARE) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < LARGE + LARGE_SPARE; i++)
        x[i] = (float)(int16_t)oracle_random(state);
    return x;
}

static void check_large_sum(float *a, float *b, float *out, float *other, size_t from, size_t count)
{
    const kernel_operand in[] = {{.data = a + from}, {.data = b + from}};
    kernel_operand to[] = {{.data = out + from}, {.data = other + from}};
    const float before = out[from + count];
    kernel_fold(to, 2, in, 2, count, RING_FLOAT32, RING_SUM, 0);
    for (size_t i = from; i < from + count; i++)
        if (out[i] != a[i] + b[i] || other[i] != out[i])
            fail_msg("element %zu of %zu from %zu: %g, %g", i, count, from, (double)out[i],
                     (double)other[i]);
    assert_true(out[from + count] == before);
}

static void test_large_fold_to_other_arrays_is_right_at_any_place(void **cmocka_state)
{
    uint64_t state = 4;
    float *arrays[4];
    for (int k = 0; k < 4; k++)
        arrays[k] = large_array(&state);
    static const size_t places[] = {0, 1, 15, 16, 17};
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        check_large_sum(arrays[0], arrays[1], arrays[2], arrays[3], places[p], LARGE - 3 * p);
    check_large_sum(arrays[0], arrays[1], arrays[2], arrays[3] + 3, 2, LARGE);
    for (int k = 0; k < 4; k++)
        free(arrays[k]);
}

static void test_large_copy_is_right_at_any_byte(void **cmocka_state)
{
    uint64_t state = 5;
    float *from = large_array(&state), *to = large_array(&state);
    const size_t bytes = sizeof(float) * LARGE - 100;
    static const size_t places[] = {0, 1, 3, 63, 64};
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        unsigned char *dst = (unsigned char *)to + places[p];
        const unsigned char *src = (const unsigned char *)from + places[4 - p];
        const unsigned char after = dst[bytes];
        kernel_copy(dst, src, bytes - p);
        assert_int_equal(memcmp(dst, src, bytes - p), 0);
        assert_int_equal(dst[bytes], after);
    }
    free(from);
    free(to);
}

static void test_small_copies_copy_exactly_the_bytes(void **cmocka_state)
{
    unsigned char from[200], to[200];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)i;
    for (size_t bytes = 0; bytes < 150; bytes++) {
        memset(to, GUARD_BYTE, sizeof to);
        kernel_copy(to + 3, from + 7, bytes);
        assert_memory_equal(to + 3, from + 7, bytes);
        assert_int_equal(to[3 + bytes], GUARD_BYTE);
        assert_int_equal(to[2], GUARD_BYTE);
    }
}

static void test_accumulators_have_the_size_of_the_type_or_of_float32(void **cmocka_state)
{
    for (ring_dtype dtype = 0; dtype < RING_DTYPE_COUNT; dtype++)
        assert_int_equal(kernel_acc_size(dtype), oracle_size(dtype, true));
}

static void check_scaled(ring_dtype dtype, size_t count, size_t shift, double by, uint64_t *state)
{
    const size_t size = oracle_size(dtype, false);
    unsigned char *src = ins[0] + GUARD + shift * size, *dst = outs[0] + GUARD + 3 * size;
    oracle_fill(src, count, dtype, false, state);
    memcpy(given[0], src, count * size);
    for (size_t i = 0; i < count; i++)
        oracle_scale(expected[0] + i * size, src, i, dtype, by);
    guard(dst, count * size);
    kernel_scale(dst, src, count, dtype, by);
    if (memcmp(dst, expected[0], count * size) != 0 || !guarded(dst, count * size))
        fail_msg("dtype %d, %zu elements, by %a", (int)dtype, count, by);
    assert_memory_equal(src, given[0], count * size);
    kernel_scale(src, src, count, dtype, by); /* in place */
    assert_memory_equal(src, expected[0], count * size);
}

static void test_products_have_the_oracles_bits(void **cmocka_state)
{
    static const ring_dtype dtypes[] = {RING_FLOAT32,  RING_FLOAT64,     RING_FLOAT16,
                                        RING_BFLOAT16, RING_FLOAT8_E4M3, RING_FLOAT8_E5M2};
    static const double factors[] = {0, 1, -0.3, 3, 1e30, 0x1p-140};
    uint64_t state = 9;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t f = 0; f < sizeof factors / sizeof *factors; f++)
            for (size_t count = 0; count <= COUNT; count += count < 40 ? 13 : 331)
                check_scaled(dtypes[d], count, count % 3, factors[f], &state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_and_operation_gives_the_oracles_bits),
        cmocka_unit_test(test_accumulator_operands_mix_with_halves),
        cmocka_unit_test(test_as_many_outputs_as_inputs_in_place_and_not),
        cmocka_unit_test(test_accumulator_flag_is_ignored_for_other_types),
        cmocka_unit_test(test_most_arrays_fold_left_to_right),
        cmocka_unit_test(test_large_fold_to_other_arrays_is_right_at_any_place),
        cmocka_unit_test(test_large_copy_is_right_at_any_byte),
        cmocka_unit_test(test_small_copies_copy_exactly_the_bytes),
        cmocka_unit_test(test_products_have_the_oracles_bits),
        cmocka_unit_test(test_accumulators_have_the_size_of_the_type_or_of_float32),
    };
    level_from_arguments(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
