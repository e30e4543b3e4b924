/* SPDX-License-Identifier: Apache-2.0
 *
 * launch: where the ranks come from: the environment (a launcher, or variables set by hand),
 * and each process may hold several as threads (-t).
 */
#ifndef PERF_LAUNCH_H
#define PERF_LAUNCH_H

#include "perf_options.h"

/** Runs the ranks of this process. @return the exit status. */
int launch_run(const perf_options *options);

#endif
