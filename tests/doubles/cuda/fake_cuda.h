/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_cuda: a libcuda without a GPU, for tests: those functions of the driver API that are used
 * here. It is built as libcuda.so.1 in a folder of its own (tests/fake-cuda of the build), so that
 * LD_LIBRARY_PATH puts it in the place of NVIDIA's. It has one GPU, at 0000:3B:00.0. Its memory is
 * reserved without access, so that any load or store of the host faults; what lies there is a file
 * for each allocation, which stands for a dma-buf.
 *
 * FAKE_CUDA=no_device: there is no GPU.
 *
 * The functions below are found by dlsym().
 */
#ifndef TEST_DOUBLES_FAKE_CUDA_H
#define TEST_DOUBLES_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

#define FAKE_CUDA_API __attribute__((visibility("default")))

/** An allocation; as CUDA's, it begins at a multiple of 512 bytes, and not at one of a page. */
FAKE_CUDA_API void *fake_cuda_alloc(size_t bytes);
/** Of what fake_cuda_alloc() gave. */
FAKE_CUDA_API void fake_cuda_free(void *memory);
/** What lies there. */
FAKE_CUDA_API unsigned char *fake_cuda_at(void *memory);

/** Sets an attribute of the GPU. @return its value before. */
FAKE_CUDA_API int fake_cuda_set(int attribute, int value);
/** From now on all calls of that function end with @p result; 0: none do. @p function stays. */
FAKE_CUDA_API void fake_cuda_fail(const char *function, int result);

typedef struct fake_cuda_counts {
    uint64_t sync_memops, handles, flushes, retains, releases, contexts_left;
    uint64_t range, range_bytes; /* of the last handle that was asked for */
} fake_cuda_counts;
/** Since the process began; contexts_left: that are pushed and not popped by this thread. */
FAKE_CUDA_API void fake_cuda_counters(fake_cuda_counts *out);

#endif
