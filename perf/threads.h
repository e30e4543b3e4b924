/* SPDX-License-Identifier: Apache-2.0
 *
 * threads: runs a body in several threads that wait for each other, and binds threads to cores. If
 * one thread cannot be started, no body runs, because the others would wait for that thread.
 */
#ifndef PERF_THREADS_H
#define PERF_THREADS_H

#include <stdbool.h>
#include <stddef.h>

/** Runs body(element) in a thread for each of the @p count elements of @p size bytes at
 *  @p array, and waits for all of them.
 *  @return how many threads could be started; no body has run if that is less than @p count. */
int threads_run(void (*body)(void *element), void *array, size_t size, int count);

/** Divides the cores that the calling thread may use into @p count equal shares, and binds the
 *  thread to share @p k, as ringrun binds ranks. @return false, without binding it, if there are
 *  fewer cores than shares. */
bool threads_take_cores(int k, int count);

#endif
