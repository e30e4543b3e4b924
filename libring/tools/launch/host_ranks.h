/* SPDX-License-Identifier: Apache-2.0
 *
 * host_ranks: gives the ranks of one host the same set of operations, whether they run here
 * (local_ranks) or on another host (remote_ranks). Orders to them and events from them are frames.
 */
#ifndef LAUNCH_HOST_RANKS_H
#define LAUNCH_HOST_RANKS_H

#include "launch_frames.h"
#include "layout.h"

/** Where events go. */
typedef struct rank_events {
    void *context;
    /** @return false while @p stream (1, 2) should not be read. */
    bool (*ready)(void *context, int stream);
    /** @return false: no more output of this stream is wanted. */
    bool (*take)(void *context, const frame *event);
} rank_events;

/** The common head of local_ranks and remote_ranks. The second half is right after tick(). */
typedef struct host_ranks {
    const struct host_ranks_ops *ops;
    const share *s;
    rank_events events;
    bool ready;       /* the host has answered                              */
    char address[64]; /* its own one, of another host that has answered      */

    double due;  /* when tick() is due next                                  */
    int alive;   /* ranks that still run                                     */
    bool hungry; /* rank 0 is there, and its standard input can take more    */
    bool done;   /* all ranks are gone, with all processes that they started */
} host_ranks;

typedef struct host_ranks_ops {
    void (*free)(host_ranks *h);
    void (*watch)(host_ranks *h, poll_set *set);
    /** Does due work. @param children  after SIGCHLD: takes note of ended ranks. */
    void (*tick)(host_ranks *h, bool children);
    void (*order)(host_ranks *h, const frame *f);
} host_ranks_ops;

#endif
