/* SPDX-License-Identifier: Apache-2.0
 * Launches over the emulation, without a driver: rooms are the host's memory. */
#include "gpu_launch.h"

#include <stdlib.h>

#include "unit_test.h"

enum { MOST_ROOMS = 1024 };

static void *rooms[MOST_ROOMS];
static size_t room_count;

unsigned gpu_one_case_of(void)
{
#ifdef __SANITIZE_THREAD__
    return 12;
#else
    return 1;
#endif
}

void gpu_launch(const char *name, const void *args, size_t bytes, gpu_shape shape)
{
    const emulated_kernel *kernel = emulated_kernel_find(name);
    if (kernel == NULL || kernel->args_bytes != bytes)
        fail_msg("kernel %s: not there, or not with these arguments", name);
    emulated_set_order((int)shape.order, shape.seed);
    if (!emulated_launch_run(&(emulated_launch){kernel, args, shape.grid, shape.block, true}))
        fail_msg("kernel %s trapped", name);
}

void *gpu_room(size_t bytes)
{
    void *room = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(room);
    assert_true(room_count < MOST_ROOMS);
    return rooms[room_count++] = room;
}

void gpu_rooms_free(void)
{
    while (room_count > 0)
        free(rooms[--room_count]);
}
