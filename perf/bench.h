/* SPDX-License-Identifier: Apache-2.0
 *
 * bench: runs all of one rank's measurements: memory, header, every case, footer. Rank 0 prints.
 */
#ifndef PERF_BENCH_H
#define PERF_BENCH_H

#include "perf_options.h"

enum { PERF_EXIT_GOOD, PERF_EXIT_WRONG, PERF_EXIT_USAGE, PERF_EXIT_ERROR };

/** @return the exit status, the same on all ranks unless one has failed. */
int bench_run(const perf_options *options, ring_comm *comm);

#endif
