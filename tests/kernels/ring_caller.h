/* SPDX-License-Identifier: Apache-2.0
 *
 * ring_caller: calls of the driver that its double takes for calls by libring. */
#ifndef TESTS_KERNELS_RING_CALLER_H
#define TESTS_KERNELS_RING_CALLER_H

#include "cuda_table.h"

#define RING_CALLER_API __attribute__((visibility("default")))

/** Allocates 64 bytes. */
RING_CALLER_API CUresult caller_allocates(const cuda_table *cu, CUdeviceptr *out);
RING_CALLER_API CUresult caller_frees(const cuda_table *cu, CUdeviceptr memory);
/** Launches one block of one thread. */
RING_CALLER_API CUresult caller_launches(const cuda_table *cu, CUfunction function, CUstream stream,
                                         void **parameters);

#endif
