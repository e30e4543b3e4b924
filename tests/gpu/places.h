/* SPDX-License-Identifier: Apache-2.0
 * places: where each rank of this process is, for the case that it hangs. On SIGUSR1 they are
 * printed, and which streams have work that has not ended. */
#ifndef TEST_GPU_PLACES_H
#define TEST_GPU_PLACES_H

#include "gpu_test.h"

enum { PLACES_RANKS = 16, PLACES_STREAMS = 2 };

/** Starts the thread that prints, once a process. */
void places_watch(const cuda_table *cu);

/** From now on the rank is at @p step of a call; the string must stay. */
void places_at(int rank, const char *step, int call);

/** The stream becomes one that is printed. */
void places_stream(int rank, int index, CUstream stream);

#endif
