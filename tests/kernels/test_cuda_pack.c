/* SPDX-License-Identifier: Apache-2.0
 *
 * pack.cu: pieces of all lengths and places to a flat buffer and back. */

#include "unit_test.h"

#include "gpu_launch.h"
#include "kernel_args.h"

#include <string.h>

enum { MOST = 700, LONGEST = 300 << 10 };

typedef struct pieces {
    unsigned count;
    cuda_piece *at; /* [count] */
    size_t bytes;   /* of the flat buffer */
} pieces;

static void fill(unsigned char *at, size_t bytes, uint64_t *state)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)test_draw(state, 256);
}

static size_t draw_length(uint64_t *state)
{
    static const unsigned below[] = {1, 20, 300, 5000};
    return test_draw(state, below[test_draw(state, 4)]);
}

static void draw_pieces(pieces *p, unsigned count, size_t longest, uint64_t *state)
{
    *p = (pieces){.count = count, .at = gpu_room(MOST * sizeof *p->at)};
    for (unsigned i = 0; i < count; i++) {
        const size_t bytes = longest != 0 && i == count / 2 ? longest : draw_length(state);
        const unsigned shift = test_draw(state, 2) == 0 ? 0 : test_draw(state, 16);
        unsigned char *room = gpu_room(bytes + 16 + 2 * GPU_GUARD);
        p->at[i] = (cuda_piece){gpu_place(room, bytes, shift), p->bytes, bytes};
        fill(p->at[i].at, bytes, state);
        p->bytes += bytes;
        p->bytes += test_draw(state, 2) == 0 ? 0 : (16 - p->bytes % 16) % 16;
    }
}

static void check_flat(const pieces *p, const unsigned char *flat)
{
    for (unsigned i = 0; i < p->count; i++)
        if (memcmp(flat + p->at[i].offset, p->at[i].at, p->at[i].bytes) != 0)
            fail_msg("piece %u of %u, %zu bytes, is not packed", i, p->count, p->at[i].bytes);
}

static void check_pieces(const pieces *p, const unsigned char *flat)
{
    check_flat(p, flat);
    for (unsigned i = 0; i < p->count; i++)
        if (!gpu_is_guarded(p->at[i].at, p->at[i].bytes))
            fail_msg("bytes beside piece %u of %u were written", i, p->count);
}

static void run_case(unsigned count, size_t longest, uint64_t *state)
{
    pieces p;
    draw_pieces(&p, count, longest, state);
    unsigned char *room = gpu_room(p.bytes + 16 + 2 * GPU_GUARD);
    unsigned char *flat = gpu_place(room, p.bytes, test_draw(state, 4));
    cuda_pack_args args = {.pieces = p.at, .flat = (char *)flat, .count = p.count};
    gpu_launch("pack", &args, sizeof args, gpu_draw_shape(state));
    check_flat(&p, flat);
    for (unsigned i = 0; i < p.count; i++) {
        const size_t between = i + 1 < p.count ? p.at[i + 1].offset : p.bytes;
        for (size_t k = p.at[i].offset + p.at[i].bytes; k < between; k++)
            assert_int_equal(flat[k], GPU_GUARD_BYTE);
    }
    assert_true(gpu_is_guarded(flat, p.bytes));
    fill(flat, p.bytes, state);
    args.unpack = 1;
    gpu_launch("pack", &args, sizeof args, gpu_draw_shape(state));
    check_pieces(&p, flat);
    gpu_rooms_free();
}

static void test_pieces_are_packed_and_unpacked(void **cmocka_state)
{
    uint64_t state = test_seed();
    for (unsigned count = 0; count < 12; count++)
        run_case(count, 0, &state);
    for (int n = 0; n < 6; n++)
        run_case(1 + test_draw(&state, MOST), 0, &state);
}

static void test_a_long_piece_among_others_is_cut(void **cmocka_state)
{
    uint64_t state = test_seed();
    for (int n = 0; n < 4; n++)
        run_case(1 + test_draw(&state, 20), LONGEST - test_draw(&state, 70000), &state);
    run_case(1, 64 << 10, &state);
    run_case(3, 128 << 10, &state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_packed_and_unpacked),
        cmocka_unit_test(test_a_long_piece_among_others_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
