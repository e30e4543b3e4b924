/* SPDX-License-Identifier: Apache-2.0
 * gpu_test: what programs for a GPU share: the driver, memory of the device, rows of results. */
#ifndef TEST_GPU_TEST_H
#define TEST_GPU_TEST_H

#include "doubles/cuda/cuda_table.h"

/** A result, for `run`: name, value, unit. */
static inline void gpu_row(const char *name, double value, const char *unit)
{
    printf("ROW\t%s\t%.6g\t%s\n", name, value, unit);
    fflush(stdout);
}

static inline void gpu_ok(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: CUDA error %d\n", what, result);
    exit(1);
}
#define OK(call) gpu_ok(call, #call)

/** The device becomes the thread's. */
static inline void gpu_use(const cuda_table *cu, CUdevice device)
{
    CUcontext context;
    OK(cu->init(0));
    OK(cu->primary_retain(&context, device));
    OK(cu->set_current(context));
}

/** Memory of the device, poisoned. */
static inline void *gpu_new(const cuda_table *cu, size_t bytes)
{
    CUdeviceptr memory;
    OK(cu->mem_alloc(&memory, bytes));
    OK(cu->set_bytes_async(memory, 0xa5, bytes, NULL));
    OK(cu->stream_synchronize(NULL));
    return (void *)(uintptr_t)memory;
}

static inline void gpu_free(const cuda_table *cu, void *memory)
{
    OK(cu->mem_free((uintptr_t)memory));
}

static inline CUstream gpu_stream_new(const cuda_table *cu)
{
    CUstream stream;
    OK(cu->stream_create(&stream, CU_STREAM_NON_BLOCKING, 0));
    return stream;
}

#endif
