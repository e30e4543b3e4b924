/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_folds: folds and copies by a GPU, in its own stream. Memory of the host that CUDA does not
 * know is taken through pinned memory.
 */
#ifndef RING_CUDA_FOLDS_H
#define RING_CUDA_FOLDS_H

#include "cuda_memory.h"

/** Fills in base.fold and base.settle. In the device's context. @return RING_OK, RING_ERR_MEMORY.
 */
ring_status cuda_folds_open(cuda_device *c);
/** The same for the end. No fold is under way. */
void cuda_folds_close(cuda_device *c);

#endif
