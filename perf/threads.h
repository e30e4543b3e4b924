/* SPDX-License-Identifier: Apache-2.0
 *
 * threads: runs bodies that wait for each other, all or none: if one thread cannot be started, the
 * others would wait for it. Ties threads to cores.
 */
#ifndef PERF_THREADS_H
#define PERF_THREADS_H

#include <stdbool.h>
#include <stddef.h>

/** Runs body(element) in a thread for each of the @p count elements of @p size bytes at
 *  @p array, and waits for all of them.
 *  @return how many threads could be started; no body has run if that is less than @p count. */
int threads_run(void (*body)(void *element), void *array, size_t size, int count);

/** Ties the calling thread to share @p k of @p count equal shares of the cores that it may use, as
 *  ringrun ties ranks. @return false, and it stays free: there are fewer cores than shares. */
bool threads_take_cores(int k, int count);

#endif
