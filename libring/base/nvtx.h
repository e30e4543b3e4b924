/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx: marks parts of a thread's time as ranges for NVIDIA's profilers, which show them beside the
 * kernels and copies that the thread launches meanwhile.
 */
#ifndef RING_NVTX_H
#define RING_NVTX_H

/** Begins a range of this thread. The first call of the process loads NVTX's library; if it is not
 *  installed, one warning is logged, and ranges have no effect. @param name  is copied. */
void nvtx_begin(const char *name);
/** Ends the range that this thread began last. */
void nvtx_end(void);

#endif
