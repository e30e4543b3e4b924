/* SPDX-License-Identifier: Apache-2.0
 *
 * bench: runs all measurements of one rank: it allocates the memory, measures every case, and on
 * rank 0 prints the header, the rows and the footer.
 */
#ifndef PERF_BENCH_H
#define PERF_BENCH_H

#include "perf_options.h"

enum { PERF_EXIT_GOOD, PERF_EXIT_WRONG, PERF_EXIT_USAGE, PERF_EXIT_ERROR };

/** Runs the measurements that the options ask for, on a rank of @p comm.
 *  @return the exit status (PERF_EXIT_*). It is the same on all ranks unless one rank has
 *  failed. */
int bench_run(const perf_options *options, ring_comm *comm);

#endif
