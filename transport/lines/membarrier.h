/* SPDX-License-Identifier: Apache-2.0
 *
 * membarrier: a memory barrier in every running thread of every process that has joined, at the
 * cost of the caller alone. */
#ifndef RING_LINES_MEMBARRIER_H
#define RING_LINES_MEMBARRIER_H

#include <stdbool.h>

/** This process joins. @return false: the kernel has no such thing, or refuses it. */
bool membarrier_join(void);

/** @return true once every thread has passed one since the call. */
bool membarrier_all(void);

#endif
