/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_programs: implements accelerator_programs.h for GPUs of NVIDIA's. A seat consists of memory
 * of the GPU, which the other ranks access by peer access or by IPC, and of a few pinned words of
 * the host.
 */
#ifndef RING_CUDA_PROGRAMS_H
#define RING_CUDA_PROGRAMS_H

#include "cuda_memory.h"

/** Fills in base.programs if the device can run programs. */
ring_status cuda_programs_open(cuda_device *c);
void cuda_programs_close(cuda_device *c);

#endif
