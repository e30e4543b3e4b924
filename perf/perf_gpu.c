/* SPDX-License-Identifier: Apache-2.0
 * Uses GPUs through libring's table of driver functions. Only this file and plan_command.c include
 * internal headers of the library. */
#include "perf_gpu.h"

#include "cuda_driver.h"

const char *perf_gpu_error(void)
{
    return fail_text();
}

int perf_gpu_count(void)
{
    const cuda_driver *api = cuda_driver_load();
    int count = 0;
    if (api == NULL || cuda_check(api->device_count(&count), "counting GPUs") != RING_OK)
        return 0;
    return count;
}

/* The context is never released; it ends with the process. */
ring_status perf_gpu_enter(int ordinal)
{
    const cuda_driver *api = cuda_driver_load();
    CUcontext context;
    CUdevice device;
    if (api == NULL)
        return RING_ERR_UNSUPPORTED;
    RING_TRY(cuda_check(api->device_get(&device, ordinal), "finding the GPU"));
    RING_TRY(cuda_check(api->primary_retain(&context, device), "opening the GPU's context"));
    return cuda_check(api->set_current(context), "entering the GPU's context");
}

ring_status perf_gpu_open(perf_gpu *out)
{
    const cuda_driver *api = cuda_driver_load();
    CUdevice device;
    CUstream stream;
    *out = (perf_gpu){.stream = NULL};
    if (api == NULL)
        return RING_ERR_UNSUPPORTED;
    RING_TRY(cuda_check(api->get_device(&device), "getting the current GPU"));
    RING_TRY(cuda_check(api->device_get_name(out->name, sizeof out->name, device),
                        "getting the GPU's name"));
    RING_TRY(cuda_check(api->device_total_memory(&out->memory, device),
                        "getting the size of the GPU's memory"));
    RING_TRY(
        cuda_check(api->stream_create(&stream, CU_STREAM_NON_BLOCKING, 0), "creating a stream"));
    out->ordinal = device;
    out->stream = stream;
    return RING_OK;
}

void perf_gpu_close(perf_gpu *gpu)
{
    if (gpu->stream != NULL)
        (void)cuda_driver_load()->stream_destroy(gpu->stream);
    gpu->stream = NULL;
}

ring_status perf_gpu_alloc(size_t bytes, void **memory, void **view)
{
    const cuda_driver *api = cuda_driver_load();
    CUdeviceptr there;
    *memory = *view = NULL;
    RING_TRY(cuda_check(api->mem_alloc(&there, bytes), "allocating GPU memory"));
    *memory = (void *)(uintptr_t)there;
    return cuda_check(api->host_alloc(view, bytes, CU_MEMHOSTALLOC_PORTABLE),
                      "allocating pinned host memory");
}

void perf_gpu_free(void *memory, void *view)
{
    if (memory != NULL)
        (void)cuda_driver_load()->mem_free((uintptr_t)memory);
    if (view != NULL)
        (void)cuda_driver_load()->host_free(view);
}

ring_status perf_gpu_put(const perf_gpu *gpu, void *memory, const void *host, size_t bytes)
{
    const cuda_driver *api = cuda_driver_load();
    if (bytes == 0)
        return RING_OK;
    RING_TRY(cuda_check(api->copy_to_device_async((uintptr_t)memory, host, bytes, gpu->stream),
                        "copying to the GPU"));
    return perf_gpu_wait(gpu);
}

ring_status perf_gpu_get(const perf_gpu *gpu, void *host, const void *memory, size_t bytes)
{
    const cuda_driver *api = cuda_driver_load();
    if (bytes == 0)
        return RING_OK;
    RING_TRY(cuda_check(api->copy_to_host_async(host, (uintptr_t)memory, bytes, gpu->stream),
                        "copying from the GPU"));
    return perf_gpu_wait(gpu);
}

ring_status perf_gpu_wait(const perf_gpu *gpu)
{
    return cuda_check(cuda_driver_load()->stream_synchronize(gpu->stream), "waiting for a stream");
}

/* Captures only calls of this thread, so that the threads of other ranks may capture and allocate
 * memory at the same time. */
ring_status perf_gpu_capture(const perf_gpu *gpu)
{
    return cuda_check(cuda_driver_load()->begin_capture(gpu->stream,
                                                        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                      "beginning to capture a stream");
}

ring_status perf_gpu_captured(const perf_gpu *gpu, void **graph)
{
    const cuda_driver *api = cuda_driver_load();
    CUgraph recorded = NULL;
    CUgraphExec ready = NULL;
    *graph = NULL;
    RING_TRY(cuda_check(api->end_capture(gpu->stream, &recorded), "capturing a stream"));
    const ring_status status = cuda_check(api->graph_instantiate(&ready, recorded, 0),
                                          "instantiating a graph");
    (void)api->graph_destroy(recorded);
    *graph = ready;
    return status;
}

ring_status perf_gpu_replay(const perf_gpu *gpu, void *graph)
{
    return cuda_check(cuda_driver_load()->graph_launch(graph, gpu->stream), "replaying a graph");
}

void perf_gpu_forget(void *graph)
{
    if (graph != NULL)
        (void)cuda_driver_load()->graph_exec_destroy(graph);
}
