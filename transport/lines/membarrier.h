/* SPDX-License-Identifier: Apache-2.0
 *
 * membarrier: executes a memory barrier in every running thread of every process that has
 * registered for it. The threads themselves need no barrier instructions. */
#ifndef RING_LINES_MEMBARRIER_H
#define RING_LINES_MEMBARRIER_H

#include <stdbool.h>

/** Registers this process. May be called again. @return false if the kernel does not support it or
 *  refuses. */
bool membarrier_join(void);

/** Makes every running thread of the registered processes execute a barrier. @return true if all of
 *  them have. */
bool membarrier_all(void);

#endif
