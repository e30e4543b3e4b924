/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_programs: programs that a GPU runs (accelerator_programs.h). A seat is a piece of the GPU's
 * memory, which the other ranks reach by peer access or by IPC, and some pinned words of the host.
 */
#ifndef RING_CUDA_PROGRAMS_H
#define RING_CUDA_PROGRAMS_H

#include "cuda_memory.h"

/** Fills in the device's table of functions, if it can run programs. */
ring_status cuda_programs_open(cuda_device *c);
void cuda_programs_close(cuda_device *c);

#endif
