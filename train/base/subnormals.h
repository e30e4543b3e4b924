/* SPDX-License-Identifier: Apache-2.0
 *
 * subnormals: makes a thread treat subnormal floats, which are below 1.2e-38, as zero, both as
 * operands and as results. CPUs compute with subnormals many times slower, and the moments of
 * gradients that are mostly zero decay to subnormals. The mode applies only to the calling thread.
 */
#ifndef TRAIN_SUBNORMALS_H
#define TRAIN_SUBNORMALS_H

#include <stdint.h>

/** Makes this thread treat subnormal numbers as zero; does nothing if the CPU has no such mode.
 *  @return the previous mode, for subnormals_restore(). */
uint64_t subnormals_flush(void);
/** Restores the mode that subnormals_flush() returned. */
void subnormals_restore(uint64_t mode);

#endif
