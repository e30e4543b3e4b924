/* SPDX-License-Identifier: Apache-2.0
 *
 * host_ranks: the ranks of one host behind one set of operations, whether they run here
 * (local_ranks) or elsewhere (remote).
 */
#ifndef LAUNCH_HOST_RANKS_H
#define LAUNCH_HOST_RANKS_H

#include "poll_set.h"

/** The common head of local_ranks and remote. */
typedef struct host_ranks {
    const struct host_ranks_ops *ops;
} host_ranks;

typedef struct host_ranks_ops {
    void (*free)(host_ranks *h);
    void (*watch)(host_ranks *h, poll_set *set);
    /** After SIGCHLD: collects ended ranks. */
    void (*collect)(host_ranks *h);
    /** Does due work. */
    void (*tick)(host_ranks *h);
    /** When tick() is due next. */
    double (*due)(const host_ranks *h);

    void (*signal)(host_ranks *h, int signal_number);
    /** Begins to end the ranks: time to report, SIGTERM, SIGKILL. */
    void (*stop)(host_ranks *h);
    void (*kill)(host_ranks *h);

    /** @return true if rank 0 is there and its standard input can take more. */
    bool (*hungry)(const host_ranks *h);
    /** Input for rank 0; count 0: its end. */
    void (*feed)(host_ranks *h, const char *data, size_t count);

    /** @return ranks that still run. */
    int (*alive)(const host_ranks *h);
    /** All ranks are gone, with all processes that they started. */
    bool (*done)(const host_ranks *h);
} host_ranks_ops;

#endif
