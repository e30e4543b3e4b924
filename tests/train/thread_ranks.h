/* SPDX-License-Identifier: Apache-2.0
 * Ranks that are threads of a test, with a communicator each. */
#ifndef TESTS_TRAIN_THREAD_RANKS_H
#define TESTS_TRAIN_THREAD_RANKS_H

#include <ring/train.h>

enum { THREAD_RANKS_MAX = 4 };

/** The work of a rank. @return its failure: ring_train_error(). */
typedef ring_status thread_rank_fn(ring_comm *comm, void *context);

/** Runs @p function on @p ranks ranks, rank r with @p contexts[r]. Fails the test with the error of
 *  the first rank that failed. */
void thread_ranks_run(int ranks, thread_rank_fn *function, void *const contexts[]);

#endif
