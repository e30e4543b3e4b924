/* SPDX-License-Identifier: Apache-2.0
 *
 * thread_count: threads of the maths library, in each rank.
 */
#ifndef TRAIN_THREAD_COUNT_H
#define TRAIN_THREAD_COUNT_H

/** @return OMP_NUM_THREADS, else 1: ranks are the parallelism. */
int threads_wanted(void);

#endif
