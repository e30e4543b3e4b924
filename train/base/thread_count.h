/* SPDX-License-Identifier: Apache-2.0
 *
 * thread_count: decides how many threads the maths library uses in each rank.
 */
#ifndef TRAIN_THREAD_COUNT_H
#define TRAIN_THREAD_COUNT_H

/** @return OMP_NUM_THREADS, or 1 if it is not set, because the ranks already run in parallel. */
int threads_wanted(void);

#endif
