/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu_launch: launches of tests of GPU kernels, in a drawn shape. gpu_launch_emulated.c runs them
 * in this process, in a drawn order of the threads; tests/gpu/gpu_launch_driver.c through the
 * driver, on memory of the device. */
#ifndef TEST_GPU_LAUNCH_H
#define TEST_GPU_LAUNCH_H

#include "draw.h"
#include "emulated_kernel.h"
#include "kernel_args.h"

#include <string.h>

/** Of so many cases one is run: where each takes long, or a test is to be short. */
unsigned gpu_one_case_of(void);
#define GPU_ONE_CASE_OF (gpu_one_case_of())

/* ThreadSanitizer takes long for each thread of a block. */
#ifdef __SANITIZE_THREAD__
enum { GPU_MOST_THREADS = 16 };
#else
enum { GPU_MOST_THREADS = 256 };
#endif

/** Blocks, threads of each, and their order between barriers, which a device chooses. */
typedef struct gpu_shape {
    unsigned grid, block, order, seed;
} gpu_shape;

static inline gpu_shape gpu_draw_shape(uint64_t *state)
{
    static const unsigned blocks[] = {32, 1, 7, 64, 256};
    const unsigned block = blocks[test_draw(state, 5)];
    return (gpu_shape){.grid = 1 + test_draw(state, 3),
                       .block = block < GPU_MOST_THREADS ? block : GPU_MOST_THREADS,
                       .order = test_draw(state, EMULATED_RANDOM + 1),
                       .seed = test_draw(state, 1000)};
}

/** A shape for a kernel whose threads take @p group elements each: as many blocks as it needs, or
 * one more. Blocks have more threads where there would be too many of them. */
static inline gpu_shape gpu_draw_tiles(uint64_t *state, size_t count, unsigned group)
{
    gpu_shape shape = gpu_draw_shape(state);
    while (shape.block < GPU_MOST_THREADS && cuda_tiles(count, group, shape.block) > 40)
        shape.block = 2 * shape.block < GPU_MOST_THREADS ? 2 * shape.block : GPU_MOST_THREADS;
    shape.grid = (unsigned)cuda_tiles(count, group, shape.block) + test_draw(state, 2);
    return shape;
}

/** Returns when it is over. All that it points to, and what that points to, lies in rooms. */
void gpu_launch(const char *name, const void *args, size_t bytes, gpu_shape shape);

/** A room of @p bytes for arrays of kernels, aligned to 64. */
void *gpu_room(size_t bytes);
/** Of all that gpu_room() gave. */
void gpu_rooms_free(void);

/* ---- Arrays at any place, with bytes around them that must stay ---- */

enum { GPU_GUARD = 64, GPU_GUARD_BYTE = 0xa5 };

/** An array of @p bytes that begins @p shift bytes behind a multiple of 16, all poisoned.
 *  @param room  [bytes + shift + 2 * GPU_GUARD], aligned to 16. */
static inline unsigned char *gpu_place(unsigned char *room, size_t bytes, unsigned shift)
{
    memset(room, GPU_GUARD_BYTE, bytes + shift + 2 * GPU_GUARD);
    return room + GPU_GUARD + shift;
}

static inline bool gpu_is_guarded(const unsigned char *at, size_t bytes)
{
    for (size_t i = 0; i < GPU_GUARD; i++)
        if (at[bytes + i] != GPU_GUARD_BYTE || *(at - 1 - i) != GPU_GUARD_BYTE)
            return false;
    return true;
}

#endif
