/* SPDX-License-Identifier: Apache-2.0
 * Launches through the driver. Rooms are one block of pinned memory, with another of the device
 * behind each launch: it is copied there and back, and addresses in it become those of the other
 * side, in the argument, too. An address is a word that lies in the block and nothing else does by
 * chance. */
#include "cuda_driver.h"
#include "cuda_images.h"
#include "kernels/gpu_launch.h"

#include <pthread.h>

#include "unit_test.h"

enum { ROOMS_BYTES = 16 << 20, MOST_ARGS = 4096, ROOM_ALIGN = 64 };

#define OK(call) assert_int_equal(call, CUDA_SUCCESS)

static const char *const sources[] = {"cast", "fold", "norm", "optimizer", "pack", "scale"};
enum { SOURCES = sizeof sources / sizeof *sources };

static struct {
    const cuda_driver *api;
    CUmodule modules[SOURCES];
    char *rooms;
    CUdeviceptr there;
    size_t used;
} gpu;

static void open_gpu(void)
{
    CUcontext context;
    void *rooms;
    gpu.api = cuda_driver_load();
    if (gpu.api == NULL)
        fail_msg("%s", fail_text());
    OK(gpu.api->primary_retain(&context, 0));
    OK(gpu.api->set_current(context));
    OK(gpu.api->host_alloc(&rooms, ROOMS_BYTES, CU_MEMHOSTALLOC_PORTABLE));
    OK(gpu.api->mem_alloc(&gpu.there, ROOMS_BYTES));
    for (int i = 0; i < SOURCES; i++) {
        const void *image = cuda_image(sources[i]);
        if (image == NULL)
            fail_msg("no kernels were compiled: was nvcc found?");
        OK(gpu.api->module_load(&gpu.modules[i], image));
    }
    gpu.rooms = rooms;
}

unsigned gpu_one_case_of(void)
{
    const char *text = getenv("RING_GPU_ONE_CASE_OF");
    const int value = text != NULL ? atoi(text) : 0;
    return value > 0 ? (unsigned)value : 1;
}

void *gpu_room(size_t bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_gpu);
    char *room = gpu.rooms + gpu.used;
    gpu.used += (bytes + ROOM_ALIGN - 1) / ROOM_ALIGN * ROOM_ALIGN;
    assert_in_range(gpu.used, 0, ROOMS_BYTES);
    return room;
}

void gpu_rooms_free(void)
{
    gpu.used = 0;
}

/* Words of @p at that are addresses from @p from on become those from @p to on. */
static void move_addresses(void *at, size_t bytes, uint64_t from, uint64_t to)
{
    for (size_t i = 0; i + sizeof from <= bytes; i += sizeof from) {
        uint64_t word;
        memcpy(&word, (char *)at + i, sizeof word);
        if (word - from >= gpu.used)
            continue;
        word += to - from;
        memcpy((char *)at + i, &word, sizeof word);
    }
}

static CUfunction find_kernel(const char *name)
{
    CUfunction found;
    for (int i = 0; i < SOURCES; i++)
        if (gpu.api->module_get_function(&found, gpu.modules[i], name) == CUDA_SUCCESS)
            return found;
    fail_msg("there is no kernel %s", name);
    return NULL;
}

void gpu_launch(const char *name, const void *args, size_t bytes, gpu_shape shape)
{
    const uint64_t here = (uintptr_t)gpu.rooms, there = gpu.there;
    _Alignas(16) char moved[MOST_ARGS];
    void *parameters[] = {moved};
    assert_in_range(bytes, 1, MOST_ARGS);
    memcpy(moved, args, bytes);
    move_addresses(moved, bytes, here, there);
    move_addresses(gpu.rooms, gpu.used, here, there);
    OK(gpu.api->copy(there, here, gpu.used));
    OK(gpu.api->launch(find_kernel(name), shape.grid, 1, 1, shape.block, 1, 1, 0, NULL, parameters,
                       NULL));
    const CUresult result = gpu.api->context_synchronize();
    if (result != CUDA_SUCCESS)
        fail_msg("kernel %s: CUDA error %d", name, result);
    OK(gpu.api->copy(here, there, gpu.used));
    move_addresses(gpu.rooms, gpu.used, there, here);
}
