/* SPDX-License-Identifier: Apache-2.0
 *
 * start: starts the ranks of this process, which are threads if there are several (-t). The
 * environment, which a launcher or the user has set, describes the processes.
 */
#ifndef PERF_LAUNCH_H
#define PERF_LAUNCH_H

#include <ring/ring.h>

/** The work of one rank. @return its exit status. */
typedef int launch_body(const void *options, ring_comm *comm);
/** Prepares the thread of a rank before its communicator is made. @param local  the rank's number
 *  on this host. @return NULL, or the reason of a failure: a string that stays valid. */
typedef const char *launch_enter(const void *options, int local);
/** Runs @p body for each rank of this process, and returns when all have ended.
 *  @param threads  number of ranks of this process. @param enter  may be NULL.
 *  @return the highest exit status. */
int launch_ranks(int threads, launch_enter *enter, launch_body *body, const void *options);

#endif
