/* SPDX-License-Identifier: Apache-2.0
 *
 * subnormals: numbers nearer to zero than a float's least normal one, 1.2e-38. CPUs compute with
 * them many times slower, and moments of gradients that are mostly zero decay into them. In this
 * mode they count as zero, as operands and as results; it is the calling thread's alone.
 */
#ifndef TRAIN_SUBNORMALS_H
#define TRAIN_SUBNORMALS_H

#include <stdint.h>

/** Has this thread take subnormal numbers for zero; nothing where the CPU has no such mode.
 *  @return the mode before, for subnormals_restore(). */
uint64_t subnormals_flush(void);
void subnormals_restore(uint64_t mode);

#endif
