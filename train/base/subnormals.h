/* SPDX-License-Identifier: Apache-2.0
 *
 * subnormals: lets a thread treat subnormal floats, those below 1.2e-38, as zero, both as operands
 * and as results. CPUs compute with them many times slower, and moments of gradients that are
 * mostly zero decay into them. The mode is that of the calling thread alone.
 */
#ifndef TRAIN_SUBNORMALS_H
#define TRAIN_SUBNORMALS_H

#include <stdint.h>

/** Makes this thread treat subnormal numbers as zero; does nothing if the CPU has no such mode.
 *  @return the previous mode, for subnormals_restore(). */
uint64_t subnormals_flush(void);
void subnormals_restore(uint64_t mode);

#endif
