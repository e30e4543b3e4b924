/* SPDX-License-Identifier: Apache-2.0
 * Functions of layers on numbers and rows: the same bits as plain loops, and nothing beside them.
 */

#include "unit_test.h"

#include "kernel_oracle.h"
#include "simd_level.h"

#include <kernels.h>
#include <math.h>
#include <string.h>

enum { N = 300, ROWS = 5, WIDTH = 67 };

static void fill(float *x, size_t count, uint64_t *state)
{
    static const float special[] = {0.0F, -0.0F, NAN, INFINITY, -INFINITY, 1e-45F, -1e-45F};
    for (size_t i = 0; i < count; i++) {
        const uint64_t r = oracle_random(state);
        x[i] = r % 16 < 7 ? special[r % 16] : (float)(int16_t)(r >> 8) / 4096;
    }
}

static void assert_same(const float *got, const float *want, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        if (memcmp(&got[i], &want[i], sizeof *got) != 0 && !(isnan(got[i]) && isnan(want[i])))
            fail_msg("%s: element %zu of %zu is %a, not %a", what, i, count, (double)got[i],
                     (double)want[i]);
    }
}

static void test_relu_cuts_what_is_below_zero(void **unused)
{
    uint64_t state = 21;
    float in[N + 1], out[N + 1], want[N + 1];
    for (size_t count = 0; count <= N; count += count < 70 ? 1 : 115) {
        fill(in, N + 1, &state);
        memcpy(out, in, sizeof out);
        memcpy(want, in, sizeof want);
        for (size_t i = 0; i < count; i++)
            want[i] = in[i] < 0.0F ? 0.0F : in[i];
        kernel_relu(out, in, count);
        assert_same(out, want, N + 1, "relu");
        kernel_relu(in, in, count);
        assert_same(in, want, N + 1, "relu in place");
    }
}

static void test_relu_passes_gradients_where_the_output_is_above_zero(void **unused)
{
    uint64_t state = 22;
    float out[N], delta[N + 1], got[N + 1], want[N + 1];
    for (size_t count = 0; count <= N; count += count < 70 ? 1 : 115) {
        fill(out, N, &state);
        fill(delta, N + 1, &state);
        memcpy(got, delta, sizeof got);
        memcpy(want, delta, sizeof want);
        for (size_t i = 0; i < count; i++)
            want[i] = out[i] > 0.0F ? delta[i] : 0.0F;
        kernel_relu_gradient(got, delta, out, count);
        assert_same(got, want, N + 1, "gradient of relu");
        kernel_relu_gradient(delta, delta, out, count);
        assert_same(delta, want, N + 1, "gradient of relu in place");
    }
}

static void test_a_row_is_added_to_all(void **unused)
{
    uint64_t state = 23;
    float rows[ROWS * WIDTH + 1], want[ROWS * WIDTH + 1], row[WIDTH];
    for (size_t width = 0; width <= WIDTH; width++) {
        fill(rows, ROWS * WIDTH + 1, &state);
        fill(row, WIDTH, &state);
        memcpy(want, rows, sizeof want);
        for (size_t i = 0; i < ROWS * width; i++)
            want[i] += row[i % width];
        kernel_add_to_rows(rows, row, ROWS, width);
        assert_same(rows, want, ROWS * WIDTH + 1, "rows");
    }
}

static void test_rows_are_added_in_their_order(void **unused)
{
    uint64_t state = 24;
    float rows[ROWS * WIDTH], sum[WIDTH + 1], want[WIDTH + 1];
    for (size_t width = 0; width <= WIDTH; width++) {
        fill(rows, ROWS * WIDTH, &state);
        fill(sum, WIDTH + 1, &state);
        memcpy(want, sum, sizeof want);
        for (size_t i = 0; i < ROWS * width; i++)
            want[i % width] += rows[i];
        kernel_add_rows(sum, rows, ROWS, width);
        assert_same(sum, want, WIDTH + 1, "sum of rows");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relu_cuts_what_is_below_zero),
        cmocka_unit_test(test_relu_passes_gradients_where_the_output_is_above_zero),
        cmocka_unit_test(test_a_row_is_added_to_all),
        cmocka_unit_test(test_rows_are_added_in_their_order),
    };
    level_from_arguments(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
