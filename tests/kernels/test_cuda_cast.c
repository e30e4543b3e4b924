/* SPDX-License-Identifier: Apache-2.0
 *
 * cast.cu against the host's casts: all halves, many floats, all places. */

#include "unit_test.h"

#include "gpu_launch.h"
#include "kernel_args.h"
#include "kernel_oracle.h"

#include <string.h>

enum { HALVES = 1 << 16, SMALL = 71, ROOM = 4 * HALVES + 16 + 2 * GPU_GUARD };

typedef struct cast {
    const char *kernel;
    size_t from, to; /* bytes of an element */
    void (*host)(void *dst, const void *src, size_t count);
} cast;

#define HOST(name, to, from) \
    static void name(void *dst, const void *src, size_t count) \
    { \
        kernel_##name((to *)dst, (const from *)src, count); \
    }
HOST(f16_to_f32, float, uint16_t)
HOST(bf16_to_f32, float, uint16_t)
HOST(f32_to_f16, uint16_t, float)
HOST(f32_to_bf16, uint16_t, float)

static const cast casts[] = {{"f16_to_f32", 2, 4, f16_to_f32},
                             {"bf16_to_f32", 2, 4, bf16_to_f32},
                             {"f32_to_f16", 4, 2, f32_to_f16},
                             {"f32_to_bf16", 4, 2, f32_to_bf16}};

static _Alignas(64) unsigned char given[4 * HALVES], expected[4 * HALVES];
static unsigned char *src, *dst; /* [ROOM] */

/* @param shift  of source and destination, in elements. */
static void check(const cast *c, size_t count, unsigned from, unsigned to, uint64_t *state)
{
    unsigned char *in = gpu_place(src, count * c->from, from * (unsigned)c->from);
    unsigned char *out = gpu_place(dst, count * c->to, to * (unsigned)c->to);
    memcpy(in, given, count * c->from);
    c->host(expected, given, count);
    const cuda_cast_args args = {in, out, count};
    gpu_launch(c->kernel, &args, sizeof args, gpu_draw_tiles(state, count, CAST_GROUP));
    for (size_t i = 0; i < count; i++)
        if (memcmp(out + i * c->to, expected + i * c->to, c->to) != 0)
            fail_msg("%s of %zu elements at %u and %u: element %zu differs", c->kernel, count, from,
                     to, i);
    assert_true(gpu_is_guarded(out, count * c->to));
}

static void fill_all_halves(void)
{
    for (unsigned i = 0; i < HALVES; i++) {
        const uint16_t half = (uint16_t)i;
        memcpy(given + 2 * i, &half, sizeof half);
    }
}

/* Floats of all kinds, and every float16 and bfloat16 with what lies beside it and between two. */
static void fill_floats(int kind, uint64_t *state)
{
    oracle_fill(given, HALVES, RING_FLOAT32, false, state);
    for (uint32_t i = 0; kind != 0 && i < HALVES; i++) {
        uint32_t bits = i << 16 | (kind == 1 ? test_draw(state, HALVES) : 0x7fff + i % 3);
        if (kind == 3) {
            float x;
            kernel_f16_to_f32(&x, &(uint16_t){(uint16_t)i}, 1);
            memcpy(&bits, &x, sizeof bits);
            bits += 0xfff + i % 3;
        }
        memcpy(given + 4 * i, &bits, sizeof bits);
    }
}

static void test_all_halves_and_many_floats_are_cast_as_by_the_host(void **cmocka_state)
{
    uint64_t state = test_seed();
    for (size_t k = 0; k < sizeof casts / sizeof *casts; k++)
        for (int kind = 0; kind < (casts[k].from == 2 ? 1 : 4); kind++) {
            if (casts[k].from == 2)
                fill_all_halves();
            else
                fill_floats(kind, &state);
            check(&casts[k], HALVES, 0, 0, &state);
            check(&casts[k], HALVES - 5, 3, 3, &state);
        }
}

static void test_casts_keep_to_their_arrays_at_any_place(void **cmocka_state)
{
    uint64_t state = test_seed();
    for (size_t k = 0; k < sizeof casts / sizeof *casts; k++)
        for (size_t count = 0; count < SMALL; count += GPU_ONE_CASE_OF) {
            oracle_fill(given, SMALL, casts[k].from == 4 ? RING_FLOAT32 : RING_FLOAT16, false,
                        &state);
            check(&casts[k], count, count % 4, count % 4, &state);
            check(&casts[k], count, test_draw(&state, 4), test_draw(&state, 4), &state);
        }
}

static int make_rooms(void **cmocka_state)
{
    src = gpu_room(ROOM);
    dst = gpu_room(ROOM);
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
        cmocka_unit_test(test_all_halves_and_many_floats_are_cast_as_by_the_host),
        cmocka_unit_test(test_casts_keep_to_their_arrays_at_any_place),
    };
    return cmocka_run_group_tests(tests, make_rooms, free_rooms);
}
