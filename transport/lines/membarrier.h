/* SPDX-License-Identifier: Apache-2.0
 *
 * membarrier: executes a memory barrier in every running thread of every process that has joined.
 * Only the caller pays for it. */
#ifndef RING_LINES_MEMBARRIER_H
#define RING_LINES_MEMBARRIER_H

#include <stdbool.h>

/** Registers this process. @return false if the kernel does not support it, or refuses. */
bool membarrier_join(void);

/** Executes the barrier. @return true after every thread has executed one. */
bool membarrier_all(void);

#endif
