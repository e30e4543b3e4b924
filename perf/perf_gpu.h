/* SPDX-License-Identifier: Apache-2.0
 *
 * perf_gpu: gives a rank a GPU's memory, a stream and graphs, through NVIDIA's driver. Only the
 * thread that has entered the GPU calls these functions.
 */
#ifndef PERF_GPU_H
#define PERF_GPU_H

#include <ring/ring.h>

typedef struct perf_gpu {
    int ordinal;
    char name[64];
    size_t memory; /* bytes of the whole GPU */
    void *stream;  /* for ring_call.stream */
} perf_gpu;

/** @return the reason of this thread's latest failure in the functions below. */
const char *perf_gpu_error(void);

/** @return the number of GPUs; 0 if there are none, or if CUDA is not installed. */
int perf_gpu_count(void);
/** Makes the GPU current for the calling thread, for its communicators and the functions below. */
ring_status perf_gpu_enter(int ordinal);

/** Describes the GPU that the thread has entered, and creates a stream. */
ring_status perf_gpu_open(perf_gpu *out);
/** Destroys the stream, if there is one. */
void perf_gpu_close(perf_gpu *gpu);

/** Allocates @p bytes of memory of the GPU, and as many bytes of pinned host memory, the view.
 *  After a failure the caller frees both as well. */
ring_status perf_gpu_alloc(size_t bytes, void **memory, void **view);
/** Frees both; either may be NULL. */
void perf_gpu_free(void *memory, void *view);

/** Copy to the GPU, and from the GPU. The copy is complete when the function returns. */
ring_status perf_gpu_put(const perf_gpu *gpu, void *memory, const void *host, size_t bytes);
ring_status perf_gpu_get(const perf_gpu *gpu, void *host, const void *memory, size_t bytes);

/** Waits until all operations enqueued on the stream are complete. */
ring_status perf_gpu_wait(const perf_gpu *gpu);

/** Begins to capture: operations enqueued on the stream are recorded instead of executed, until
 *  perf_gpu_captured(). */
ring_status perf_gpu_capture(const perf_gpu *gpu);
/** Ends the capture. @param[out] graph  the recorded operations; NULL after a failure. */
ring_status perf_gpu_captured(const perf_gpu *gpu, void **graph);
/** Enqueues one replay of the graph on the stream. */
ring_status perf_gpu_replay(const perf_gpu *gpu, void *graph);
/** Destroys the graph, which may be NULL. */
void perf_gpu_forget(void *graph);

#endif
