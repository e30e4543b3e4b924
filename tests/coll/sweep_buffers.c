/* SPDX-License-Identifier: Apache-2.0
 * Buffers of all kinds of memory. */
#include "coll_sweep.h"

#include "doubles/cuda/cuda_table.h"
#include "doubles/far.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xa5 };

#pragma weak far_alloc
#pragma weak far_free
#pragma weak far_write
#pragma weak far_read

bool sweep_has_far(void)
{
    return far_alloc != NULL;
}

static bool is_far(const guarded *g)
{
    return !g->shared && sweep_is_far(g->memory);
}

/* ---- Of a GPU ---- */

static cuda_table cu;

static void load_cuda(void)
{
    cu = cuda_functions();
}

static void expect_success(CUresult result)
{
    if (result != CUDA_SUCCESS)
        abort();
}

/* The buffers were written by copies in the legacy stream, for which this stream does not wait. */
void *sweep_stream_new(void)
{
    CUstream stream;
    expect_success(cu.stream_synchronize(NULL));
    expect_success(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING, 0));
    return stream;
}

void sweep_stream_end(void *stream)
{
    expect_success(cu.stream_synchronize(stream));
    expect_success(cu.stream_destroy(stream));
}

void sweep_start_gpu(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_cuda);
    expect_success(cu.init(0));
}

void sweep_use_gpu(int device)
{
    CUcontext context;
    sweep_start_gpu();
    expect_success(cu.primary_retain(&context, device));
    expect_success(cu.set_current(context));
}

/* One of them lies there. */
static void copy(void *to, const void *from, size_t bytes)
{
    expect_success(cu.copy((uintptr_t)to, (uintptr_t)from, bytes));
}

static unsigned char *alloc_there(const guarded *g, size_t bytes)
{
    CUdeviceptr memory;
    if (g->memory == SWEEP_FAR)
        return far_alloc(bytes);
    expect_success(cu.mem_alloc(&memory, bytes));
    return (unsigned char *)(uintptr_t)memory;
}

static void free_there(const guarded *g)
{
    if (g->memory == SWEEP_FAR)
        far_free(g->at - GUARD);
    else
        expect_success(cu.mem_free((uintptr_t)(g->at - GUARD)));
}

guarded guarded_new(size_t bytes, bool shared, sweep_memory memory)
{
    const size_t all = bytes + 2 * GUARD;
    guarded g = {.bytes = bytes, .shared = shared, .memory = memory};
    void *base = NULL;
    if (!shared)
        base = malloc(all);
    else if (ring_mem_alloc(&base, all) != RING_OK)
        base = NULL;
    if (base == NULL)
        abort();
    memset(base, GUARD_BYTE, all);
    g.view = (unsigned char *)base + GUARD;
    g.at = is_far(&g) ? alloc_there(&g, all) + GUARD : g.view;
    if (!shared && memory == SWEEP_REGISTERED && ring_mem_register(base, all) != RING_OK)
        abort();
    return g;
}

void guarded_free(guarded *g)
{
    unsigned char *base = g->view - GUARD;
    if (is_far(g))
        free_there(g);
    if (!g->shared && g->memory == SWEEP_REGISTERED && ring_mem_deregister(base) != RING_OK)
        abort();
    if (g->shared)
        ring_mem_free(base);
    else
        free(base);
}

bool guarded_intact(const guarded *g)
{
    for (size_t i = 1; i <= GUARD; i++)
        if (g->view[-(ptrdiff_t)i] != GUARD_BYTE || g->view[g->bytes + i - 1] != GUARD_BYTE)
            return false;
    return true;
}

void guarded_push(const guarded *g)
{
    if (is_far(g) && g->memory == SWEEP_CUDA)
        copy(g->at - GUARD, g->view - GUARD, g->bytes + 2 * GUARD);
    else if (is_far(g))
        far_write(g->at - GUARD, g->view - GUARD, g->bytes + 2 * GUARD);
}

void guarded_pull(const guarded *g)
{
    if (is_far(g) && g->memory == SWEEP_CUDA)
        copy(g->view - GUARD, g->at - GUARD, g->bytes + 2 * GUARD);
    else if (is_far(g))
        far_read(g->view - GUARD, g->at - GUARD, g->bytes + 2 * GUARD);
}
