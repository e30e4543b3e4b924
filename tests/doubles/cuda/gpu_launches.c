/* SPDX-License-Identifier: Apache-2.0
 * Modules, functions and launches. A device has room for a few blocks, each of which is a thread of
 * the GPU process; the blocks of launches take these places in order. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct module {
    int device;
    struct CUfunc_st *functions;
} module;

struct CUfunc_st {
    const emulated_kernel *kernel;
    int device, most_dynamic;
    _Atomic bool loaded; /* by a call that needs its code */
    void *handle;
    struct CUfunc_st *next;
};

/* ---- Modules ---- */

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    static const uint32_t fatbin = 0xba55ed50;
    const char *options = getenv("FAKE_CUDA");
    int device;
    ENTER();
    TRY(device_here(&device));
    TRY(capture_forbids());
    if (options != NULL && strcmp(options, "no_binary") == 0)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (memcmp(image, &fatbin, sizeof fatbin) != 0 && strncmp(image, "RINGEMU", 7) != 0)
        return CUDA_ERROR_INVALID_IMAGE;
    module *m = calloc(1, sizeof *m);
    if (m == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->device = device;
    *out = object_add(OBJECT_MODULE, m);
    return 0;
}

CUresult cuModuleUnload(CUmodule handle)
{
    ENTER();
    module *m = object_take(OBJECT_MODULE, handle);
    if (m == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    while (m->functions != NULL) {
        struct CUfunc_st *f = m->functions;
        m->functions = f->next;
        (void)object_take(OBJECT_FUNCTION, f->handle);
        free(f);
    }
    free(m);
    return 0;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name)
{
    ENTER();
    module *m = object_get(OBJECT_MODULE, handle);
    if (m == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    const emulated_kernel *k = emulated_kernel_find(name);
    if (k == NULL)
        return CUDA_ERROR_NOT_FOUND;
    struct CUfunc_st *f = m->functions;
    while (f != NULL && f->kernel != k)
        f = f->next;
    if (f == NULL) {
        f = calloc(1, sizeof *f);
        if (f == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *f = (struct CUfunc_st){.kernel = k, .device = m->device, .next = m->functions};
        f->most_dynamic = MOST_SHARED - (int)k->shared_bytes;
        f->handle = object_add(OBJECT_FUNCTION, f);
        m->functions = f;
    }
    *out = f->handle;
    return 0;
}

CUresult cuFuncGetAttribute(int *out, CUfunction_attribute attribute, CUfunction handle)
{
    ENTER();
    struct CUfunc_st *f = object_get(OBJECT_FUNCTION, handle);
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    f->loaded = true;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *out = MOST_BLOCK_THREADS;
        return 0;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *out = (int)f->kernel->shared_bytes;
        return 0;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *out = f->most_dynamic;
        return 0;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuFuncLoad(CUfunction handle)
{
    ENTER();
    struct CUfunc_st *f = object_get(OBJECT_FUNCTION, handle);
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    f->loaded = true;
    return 0;
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value)
{
    ENTER();
    struct CUfunc_st *f = object_get(OBJECT_FUNCTION, handle);
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        (size_t)value + f->kernel->shared_bytes > MOST_SHARED_OPTIN)
        return CUDA_ERROR_INVALID_VALUE;
    f->most_dynamic = value;
    return 0;
}

static bool fits(const struct CUfunc_st *f, unsigned block, size_t dynamic_shared)
{
    return block >= 1 && block <= MOST_BLOCK_THREADS && dynamic_shared <= (size_t)f->most_dynamic;
}

/* A multiprocessor has room for one block. */
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, CUfunction handle, int block,
                                                     size_t dynamic_shared)
{
    ENTER();
    const struct CUfunc_st *f = object_get(OBJECT_FUNCTION, handle);
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (block < 1)
        return CUDA_ERROR_INVALID_VALUE;
    *out = fits(f, (unsigned)block, dynamic_shared);
    return 0;
}

/* ---- Launching ---- */

static _Atomic(const char *) last_kernel;
static _Atomic unsigned last_blocks;

const char *fake_cuda_last_kernel(unsigned *blocks)
{
    *blocks = last_blocks;
    return last_kernel;
}

/* The most threads of a block in a cooperative launch. Such threads wait for each other, and
 * changing fibers is slow. The kernels accept any number of threads. */
enum { COOPERATING = 32 };

static CUresult put_launch(CUfunction handle, CUstream stream, const unsigned *shape,
                           size_t dynamic_shared, void *const *parameters, bool cooperative,
                           const void *caller)
{
    int slot;
    TRY(stream_find(stream, &slot));
    struct CUfunc_st *f = object_get(OBJECT_FUNCTION, handle);
    if (f == NULL || f->device != gpu->streams[slot].device)
        return CUDA_ERROR_INVALID_HANDLE;
    rule_check_launch(f->loaded, caller);
    f->loaded = true;
    last_kernel = f->kernel->name;
    last_blocks = shape[0];
    if (shape[1] * shape[2] * shape[4] * shape[5] != 1)
        misuse("grids and blocks of several dimensions are not emulated");
    if (shape[0] < 1 || !fits(f, shape[3], dynamic_shared) || parameters == NULL ||
        f->kernel->args_bytes > MOST_ARGS)
        return CUDA_ERROR_INVALID_VALUE;
    if (cooperative && device_attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) == 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (cooperative && shape[0] > (unsigned)gpu_is.blocks)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    op o = {.kind = OP_LAUNCH,
            .launch = {.kernel = f->kernel,
                       .grid = shape[0],
                       .block = cooperative && shape[3] > COOPERATING ? COOPERATING : shape[3]},
            .cooperative = cooperative,
            .args_bytes = f->kernel->args_bytes};
    memcpy(o.args, parameters[0], f->kernel->args_bytes);
    if (!gpu_is.launches_wait || capture_of(slot) != NULL)
        return stream_put(slot, &o);
    TRY(capture_forbids_legacy(slot));
    return ticket_wait(slot, stream_append(slot, (const op *const[]){&o}, 1, APPEND_CALL));
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **parameters, void **extra)
{
    const unsigned shape[] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
    ENTER();
    if (extra != NULL)
        misuse("arguments in one buffer are not emulated");
    return put_launch(function, stream, shape, shared_bytes, parameters, false,
                      __builtin_return_address(0));
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, CUstream stream,
                                   void **parameters)
{
    const unsigned shape[] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
    ENTER();
    return put_launch(function, stream, shape, shared_bytes, parameters, true,
                      __builtin_return_address(0));
}

/* ---- In the GPU process ---- */

/* Launches start in the order in which their streams reach them. A cooperative launch, which needs
 * room for all its blocks at once, holds up the later ones. */
void launch_run(op *o, int device)
{
    device_state *d = &gpu->devices[device];
    const int index = (int)(o - gpu->ops);
    gpu_lock();
    o->started = o->ended = 0;
    o->queued = -1;
    if (d->last >= 0)
        gpu->ops[d->last].queued = index;
    else
        d->first = index;
    d->last = index;
    gpu_ring(BELL_BLOCKS);
    while (o->ended < o->launch.grid)
        gpu_await(BELL_STREAMS);
    gpu->launches_done++;
    gpu_unlock();
}

/* @return the launch whose next block starts now, or NULL. */
static op *next_block(device_state *d, unsigned *out)
{
    op *o = d->first >= 0 ? &gpu->ops[d->first] : NULL;
    if (o == NULL)
        return NULL;
    const unsigned wanted = !o->cooperative ? 1 : o->started == 0 ? o->launch.grid : 0;
    if (wanted > (unsigned)(gpu_is.blocks - d->resident) ||
        !places_take((int)(d - gpu->devices), wanted))
        return NULL;
    gpu->launches_started += o->started == 0;
    *out = o->started++;
    d->resident++;
    if (o->started == o->launch.grid) {
        d->first = o->queued;
        d->last = d->first >= 0 ? d->last : -1;
    }
    return o;
}

/* Other processes do not ring this one's bells when they give up places, so one thread polls. */
static void await_places(device_state *d)
{
    if (d->first < 0 || !places_are_shared() || d->polled) {
        gpu_await(BELL_BLOCKS);
        return;
    }
    d->polled = true;
    gpu_unlock();
    usleep(500);
    gpu_lock();
    d->polled = false;
}

void *block_main(void *device_number)
{
    device_state *d = &gpu->devices[(intptr_t)device_number];
    unsigned index;
    gpu_forget_peers((int)(intptr_t)device_number);
    gpu_lock();
    for (;;) {
        op *o;
        while ((o = next_block(d, &index)) == NULL)
            await_places(d);
        if (places_are_shared())
            gpu_ring(BELL_BLOCKS); /* another thread looks now */
        gpu_unlock();
        if (!emulated_block_run(&o->launch, index))
            gpu_die(CUDA_ERROR_LAUNCH_FAILED, "a kernel trapped");
        gpu_lock();
        d->resident--;
        places_give((int)(d - gpu->devices));
        o->ended++;
        gpu_ring(BELL_STREAMS);
        gpu_ring(BELL_BLOCKS);
    }
    return NULL;
}
