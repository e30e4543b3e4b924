/* SPDX-License-Identifier: Apache-2.0
 *
 * launch: where the ranks come from: the environment (a launcher, or variables set by hand),
 * and each process may hold several as threads (-t).
 */
#ifndef PERF_LAUNCH_H
#define PERF_LAUNCH_H

#include <ring/ring.h>

/** The work of one rank. @return its exit status. */
typedef int launch_body(const void *options, ring_comm *comm);
/** Prepares a rank's thread before its communicator is made. @param local  the rank's number on
 *  this host. @return NULL, or why it cannot be a rank; a string that stays valid. */
typedef const char *launch_enter(const void *options, int local);
/** Runs the ranks of this process, of which it has @p threads. @param enter  may be NULL.
 *  @return the exit status. */
int launch_ranks(int threads, launch_enter *enter, launch_body *body, const void *options);

#endif
