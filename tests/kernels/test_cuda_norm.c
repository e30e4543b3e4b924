/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.cu and scale.cu: the sum of squares against a plain loop in the order
 * that kernel_args.h tells, the clipping factor against its formula, scaled arrays against
 * kernel_scale(). */

#include "unit_test.h"

#include "gpu_launch.h"
#include "kernel_args.h"
#include "kernel_oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 5 * CUDA_NORM_PART, THREADS = CUDA_BLOCK, ROOM = 8 * MOST + 16 + 2 * GPU_GUARD };

static float floats[MOST];
static uint16_t halves[MOST];
static _Alignas(64) unsigned char expected[ROOM];
static unsigned char *room, *result; /* [ROOM] */

/* Single values that kernels read and write. */
static struct few {
    double sums[8], total, factor, by;
    uint32_t overflow;
} * few;

/* ---- The sum -------------------------------------------------------------------------------- */

static double add_pairwise(double *sums)
{
    for (int reach = THREADS / 2; reach > 0; reach /= 2)
        for (int t = 0; t < reach; t++)
            sums[t] += sums[t + reach];
    return sums[0];
}

static double sum_part(const float *x, size_t count)
{
    double sums[THREADS] = {0};
    for (size_t row = 0; row < count; row += 4 * THREADS)
        for (size_t i = row; i < count && i < row + 4 * THREADS; i++)
            sums[(i - row) / 4] += (double)x[i] * (double)x[i];
    return add_pairwise(sums);
}

static double sum_squares(const float *x, size_t count)
{
    double sums[THREADS] = {0};
    for (size_t part = 0; part < cuda_norm_parts(count); part++) {
        const size_t begin = part * CUDA_NORM_PART, left = count - begin;
        sums[part % THREADS] += sum_part(x + begin, left < CUDA_NORM_PART ? left : CUDA_NORM_PART);
    }
    return add_pairwise(sums);
}

static gpu_shape draw_shape(uint64_t *state)
{
    gpu_shape shape = gpu_draw_shape(state);
    shape.block = THREADS;
    return shape;
}

static cuda_norm_args finish(const double *sums, uint64_t parts, double max_norm, uint64_t *state)
{
    memmove(few->sums, sums, parts * sizeof *sums);
    const cuda_norm_args args = {few->sums,   parts,        0.125,         max_norm,
                                 &few->total, &few->factor, &few->overflow};
    gpu_shape shape = draw_shape(state);
    shape.grid = 1;
    few->overflow = 0;
    gpu_launch("norm_finish", &args, sizeof args, shape);
    return args;
}

/* @param kind  0: float32, 1: float16, 2: bfloat16. */
static double gpu_sum(int kind, size_t count, unsigned shift, uint64_t *state)
{
    static const char *const kernels[] = {"squares_f32", "squares_f16", "squares_bf16"};
    const unsigned size = kind == 0 ? 4 : 2;
    void *at = gpu_place(room, count * size, shift * size);
    memcpy(at, kind == 0 ? (void *)floats : halves, count * size);
    const cuda_squares_args args = {at, count, few->sums};
    gpu_launch(kernels[kind], &args, sizeof args, draw_shape(state));
    return *finish(few->sums, cuda_norm_parts(count), INFINITY, state).total;
}

static void check_sum(size_t count, unsigned shift, uint64_t *state)
{
    void (*const narrow[])(uint16_t *, const float *, size_t) = {NULL, kernel_f32_to_f16,
                                                                 kernel_f32_to_bf16};
    void (*const widen[])(float *, const uint16_t *, size_t) = {NULL, kernel_f16_to_f32,
                                                                kernel_bf16_to_f32};
    for (size_t i = 0; i < count; i++)
        floats[i] = ldexpf((float)(int16_t)oracle_random(state), -(int)(oracle_random(state) % 24));
    for (int kind = 0; kind < 3; kind++) {
        if (kind > 0) {
            narrow[kind](halves, floats, count);
            widen[kind](floats, halves, count);
        }
        const double want = sum_squares(floats, count), got = gpu_sum(kind, count, shift, state);
        if (memcmp(&got, &want, sizeof got) != 0)
            fail_msg("kind %d of %zu at %u: %a, not %a", kind, count, shift, got, want);
    }
}

static void test_squares_are_added_in_the_order_that_is_told(void **cmocka_state)
{
    uint64_t state = test_seed();
    static const size_t bounds[] = {1024, 4096, CUDA_NORM_PART, 2 * CUDA_NORM_PART, MOST - 4};
    for (size_t count = 0; count < 12; count += GPU_ONE_CASE_OF)
        check_sum(count, (unsigned)count % 4, &state);
    for (size_t b = 0; b < 5; b += GPU_ONE_CASE_OF)
        for (size_t beside = 0; beside < 3; beside++)
            check_sum(bounds[b] - 1 + beside, test_draw(&state, 2) * test_draw(&state, 4), &state);
    check_sum(test_draw(&state, MOST), 0, &state);
}

/* ---- What follows from it ------------------------------------------------------------------- */

static void test_gradients_are_clipped_as_by_torch(void **cmocka_state)
{
    uint64_t state = test_seed();
    const double total = 64, norm = 1; /* 0.125 * sqrt(64) */
    assert_true(*finish(&total, 1, 4, &state).factor == 0.125);
    assert_true(*finish(&total, 1, INFINITY, &state).factor == 0.125);
    assert_true(*finish(&total, 1, 0.5, &state).factor == 0.125 * (0.5 / (norm + 1e-6)));
    assert_true(*finish(&total, 1, 0, &state).factor == 0);
    assert_true(isnan(*finish(&(double){NAN}, 1, 1, &state).factor));
}

static void test_one_element_that_is_not_finite_sets_the_flag(void **cmocka_state)
{
    uint64_t state = test_seed();
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < MOST; i++)
        floats[i] = 3e38F;
    const double largest = gpu_sum(0, MOST, 0, &state);
    assert_int_equal(*finish(&largest, 1, 1, &state).overflow, 0);
    for (int n = 0; n < 6; n += GPU_ONE_CASE_OF) {
        const size_t at = test_draw(&state, MOST);
        floats[at] = bad[n % 3];
        const double total = gpu_sum(0, MOST, (unsigned)n % 2, &state);
        assert_int_equal(*finish(&total, 1, 1, &state).overflow, 1);
        floats[at] = 3e38F;
    }
}

/* ---- Scaled arrays -------------------------------------------------------------------------- */

typedef struct scale {
    const char *kernel;
    ring_dtype dtype;
} scale;

static void check_scale(const scale *s, size_t count, unsigned from, unsigned to, uint64_t *state)
{
    const double factors[] = {1, 1.0 / 3, 0x1p-20, -1e30, INFINITY};
    const double by = factors[test_draw(state, 5)];
    const size_t bytes = count * oracle_size(s->dtype, false);
    unsigned char *src = gpu_place(room, bytes, from);
    unsigned char *dst = from == to ? src : gpu_place(result, bytes, to);
    oracle_fill(expected, count, s->dtype, false, state);
    memcpy(src, expected, bytes);
    kernel_scale(expected, expected, count, s->dtype, by);
    const bool in_memory = test_draw(state, 2) == 0;
    few->by = by;
    const cuda_scale_args args = {dst, src, count, in_memory ? &few->by : NULL, in_memory ? 7 : by};
    const unsigned vector = 16 / (unsigned)oracle_size(s->dtype, false);
    gpu_launch(s->kernel, &args, sizeof args, gpu_draw_tiles(state, count, vector));
    if (memcmp(dst, expected, bytes) != 0 || !gpu_is_guarded(dst, bytes))
        fail_msg("%s of %zu at %u and %u by %g", s->kernel, count, from, to, by);
}

static void test_arrays_are_scaled_as_by_the_host(void **cmocka_state)
{
    uint64_t state = test_seed();
    static const scale scales[] = {{"scale_f16", RING_FLOAT16},
                                   {"scale_f32", RING_FLOAT32},
                                   {"scale_f64", RING_FLOAT64},
                                   {"scale_bf16", RING_BFLOAT16},
                                   {"scale_e4m3", RING_FLOAT8_E4M3},
                                   {"scale_e5m2", RING_FLOAT8_E5M2}};
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++)
        for (size_t n = 0; n < 130; n += GPU_ONE_CASE_OF) {
            const size_t count = n < 71 ? n : test_draw(&state, 5000);
            const unsigned from = test_draw(&state, 16);
            check_scale(&scales[s], count, from, from, &state);
            check_scale(&scales[s], count, n % 2 == 0 ? 0 : from, test_draw(&state, 16), &state);
            check_scale(&scales[s], count, 16, 0, &state);
        }
}

static int make_rooms(void **cmocka_state)
{
    room = gpu_room(ROOM);
    result = gpu_room(ROOM);
    few = gpu_room(sizeof *few);
    return 0;
}

static int free_rooms(void **cmocka_state)
{
    gpu_rooms_free();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_squares_are_added_in_the_order_that_is_told),
        cmocka_unit_test(test_gradients_are_clipped_as_by_torch),
        cmocka_unit_test(test_one_element_that_is_not_finite_sets_the_flag),
        cmocka_unit_test(test_arrays_are_scaled_as_by_the_host),
    };
    return cmocka_run_group_tests(tests, make_rooms, free_rooms);
}
