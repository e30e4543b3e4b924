/* SPDX-License-Identifier: Apache-2.0
 *
 * perf_gpu: a GPU as a rank measures with it, by NVIDIA's driver: memory, a stream, graphs. One
 * call of it at a time, by the thread that entered the GPU.
 */
#ifndef PERF_GPU_H
#define PERF_GPU_H

#include <ring/ring.h>

typedef struct perf_gpu {
    int ordinal;
    char name[64];
    size_t memory; /* bytes in all */
    void *stream;  /* as ring_call.stream takes it */
} perf_gpu;

/** @return the reason of this thread's latest failure here. */
const char *perf_gpu_error(void);

/** @return how many GPUs CUDA sees; 0: none, or CUDA is not there. */
int perf_gpu_count(void);
/** Makes the GPU the thread's, for its communicators and the calls below. */
ring_status perf_gpu_enter(int ordinal);

/** @param[out] out  the GPU that the thread has entered. */
ring_status perf_gpu_open(perf_gpu *out);
/** NULL is allowed. */
void perf_gpu_close(perf_gpu *gpu);

/** @param[out] memory  of the GPU. @param[out] view  as many bytes of the host. */
ring_status perf_gpu_alloc(size_t bytes, void **memory, void **view);
/** NULL is allowed. */
void perf_gpu_free(void *memory, void *view);

/** Copies to the GPU, or from it; complete when it returns. */
ring_status perf_gpu_put(const perf_gpu *gpu, void *memory, const void *host, size_t bytes);
ring_status perf_gpu_get(const perf_gpu *gpu, void *host, const void *memory, size_t bytes);

/** Returns when all that was asked of the stream is over. */
ring_status perf_gpu_wait(const perf_gpu *gpu);

/** From here on what is asked of the stream is recorded, until perf_gpu_captured(). */
ring_status perf_gpu_capture(const perf_gpu *gpu);
/** @param[out] graph  what was recorded, to be replayed; NULL if it failed. */
ring_status perf_gpu_captured(const perf_gpu *gpu, void **graph);
/** Asks the stream for one replay. */
ring_status perf_gpu_replay(const perf_gpu *gpu, void *graph);
/** NULL is allowed. */
void perf_gpu_forget(void *graph);

#endif
