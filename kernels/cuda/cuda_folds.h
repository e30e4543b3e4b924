/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_folds: runs folds and copies on a GPU, in a stream of libring's. Operands in host memory are
 * copied through pinned memory.
 */
#ifndef RING_CUDA_FOLDS_H
#define RING_CUDA_FOLDS_H

#include "cuda_memory.h"

/** Allocates pinned memory, and fills in base.fold, reap, settle and staging. The caller has
 * entered the device's context.
 *  @return RING_OK, RING_ERR_MEMORY, RING_ERR_SYSTEM. */
ring_status cuda_folds_open(cuda_device *c);
/** Frees the memory of folds. No fold may be under way. */
void cuda_folds_close(cuda_device *c);

#endif
