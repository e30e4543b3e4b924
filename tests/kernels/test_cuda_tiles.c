/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiles of kernels that stream over arrays: their number, and the far end of arrays that have
 * more elements and need more threads than 32 bits count. Of such arrays only the pages at the end
 * have memory, and only the blocks there are run. */

#include "unit_test.h"

#include "emulated_kernel.h"
#include "kernel_args.h"

#include <ring/ring.h>
#include <string.h>
#include <sys/mman.h>

#define COUNT ((UINT64_C(1) << 36) + 70001) /* of int8: more than 2^32 threads of 16 */
enum { ROOM = 4096, AROUND = 64, CHECKED = 3 * 16 * CUDA_BLOCK };

static void test_tiles_are_enough_and_fit_a_grid(void **cmocka_state)
{
    assert_int_equal(cuda_tiles(UINT64_C(1) << 32, 4, CUDA_BLOCK), (1 << 22) + 1);
    assert_int_equal(cuda_tiles(UINT64_C(1) << 39, 2, CUDA_BLOCK), (1 << 30) + 1);
    for (unsigned group = 2; group <= 16; group *= 2)
        for (uint64_t count = 0; count < 3000; count++)
            for (unsigned lead = 0; lead < group; lead++) {
                const uint64_t head = lead < count ? lead : count, groups = (count - head) / group;
                const uint64_t pieces = count - groups * group + groups;
                assert_true(cuda_tiles(count, group, CUDA_BLOCK) * CUDA_BLOCK >= pieces);
                assert_true(cuda_tiles(count, group, CUDA_BLOCK) * CUDA_BLOCK * group >= count);
            }
}

static unsigned char *far_array(void)
{
    void *at = mmap(NULL, COUNT + ROOM, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    return at;
}

/* Runs the blocks that hold the last CHECKED elements. */
static void run_end(const char *name, const void *args, size_t bytes)
{
    const emulated_kernel *kernel = emulated_kernel_find(name);
    assert_non_null(kernel);
    assert_int_equal(kernel->args_bytes, bytes);
    const emulated_launch launch = {kernel, args, (unsigned)cuda_tiles(COUNT, 16, CUDA_BLOCK),
                                    CUDA_BLOCK, false};
    for (unsigned back = 1; back <= 5; back++)
        assert_true(emulated_block_run(&launch, launch.grid - back));
}

/* @param shift  of the inputs and of the output, in bytes. */
static void check_end(const char *name, unsigned in_shift, unsigned out_shift)
{
    unsigned char *rooms[] = {far_array(), far_array(), far_array()}, *at[3];
    for (int k = 0; k < 3; k++) {
        at[k] = rooms[k] + (k == 2 ? out_shift : in_shift);
        for (uint64_t i = COUNT - 6 * 4096; i < COUNT + AROUND; i++)
            at[k][i] = (unsigned char)(i * (7 + 2 * (unsigned)k) >> 3);
    }
    cuda_fold_args all = {.ins = {at[0], at[1]},
                          .outs = {at[2]},
                          .count = COUNT,
                          .in_count = 2,
                          .out_count = 1,
                          .op = RING_SUM};
    const cuda_fold_few_args few = {.ins = {at[0], at[1]},
                                    .outs = {at[2]},
                                    .count = COUNT,
                                    .lead = (16 - in_shift) % 16,
                                    .in_count = 2,
                                    .out_count = 1,
                                    .op = RING_SUM};
    if (strncmp(name, "fold_few", 8) == 0)
        run_end(name, &few, sizeof few);
    else
        run_end(name, &all, sizeof all);
    for (uint64_t i = COUNT - CHECKED; i < COUNT; i++)
        if (at[2][i] != (unsigned char)(at[0][i] + at[1][i]))
            fail_msg("%s: element %llu of %llu is wrong", name, (unsigned long long)i,
                     (unsigned long long)COUNT);
    for (uint64_t i = COUNT; i < COUNT + AROUND; i++)
        assert_int_equal(at[2][i], (unsigned char)(i * 11 >> 3));
    for (int k = 0; k < 3; k++)
        munmap(rooms[k], COUNT + ROOM);
}

static void test_the_end_of_long_arrays_is_folded(void **cmocka_state)
{
    check_end("fold_few_i8", 0, 0);
    check_end("fold_few_i8", 11, 11);
    check_end("fold_i8", 0, 0);
    check_end("fold_i8", 3, 3);
    check_end("fold_i8", 1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles_are_enough_and_fit_a_grid),
        cmocka_unit_test(test_the_end_of_long_arrays_is_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
