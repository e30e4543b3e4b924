/* SPDX-License-Identifier: Apache-2.0
 *
 * host_ranks: the interface to the ranks of one host, which has two implementations: local_ranks
 * for this host, and remote_ranks for another. Orders to ranks and events from them are frames.
 */
#ifndef LAUNCH_HOST_RANKS_H
#define LAUNCH_HOST_RANKS_H

#include "launch_frames.h"
#include "layout.h"

/** Callbacks for the events of ranks. */
typedef struct rank_events {
    void *context;
    /** @return false while output of @p stream (1 or 2) must not be read. */
    bool (*ready)(void *context, int stream);
    /** Handles an event. @return false if the stream of this output has no reader any more. */
    bool (*take)(void *context, const frame *event);
} rank_events;

/** The common head of local_ranks and remote_ranks. The members after the blank line are up to date
 *  when tick() has returned. */
typedef struct host_ranks {
    const struct host_ranks_ops *ops;
    const share *s;
    rank_events events;
    bool ready;       /* the host has answered: ranks can be started        */
    char address[64]; /* of another host, which it has reported; else ""     */

    double due;  /* time (clock_now()) at which tick() is due next           */
    int alive;   /* number of ranks that still run                           */
    bool hungry; /* rank 0 runs here, and its standard input can take more   */
    bool done;   /* all ranks and the processes that they started have ended */
} host_ranks;

typedef struct host_ranks_ops {
    /** Ends the ranks that still run, and frees @p h. */
    void (*free)(host_ranks *h);
    /** Adds the descriptors of the ranks to the set. */
    void (*watch)(host_ranks *h, poll_set *set);
    /** Does the work that is due. @param children  true after SIGCHLD: checks which ranks have
     *  ended. */
    void (*tick)(host_ranks *h, bool children);
    /** Executes an order. */
    void (*order)(host_ranks *h, const frame *f);
} host_ranks_ops;

#endif
