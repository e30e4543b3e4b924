/* SPDX-License-Identifier: Apache-2.0
 *
 * device_ranks: sets up the ranks of a call that an emulated GPU runs in one launch, with their
 * links, their buffers and the expected results.
 */
#ifndef TESTS_COLL_DEVICE_RANKS_H
#define TESTS_COLL_DEVICE_RANKS_H

#include "algo.h"
#include "program_args.h"

enum { DEVICE_MOST_RANKS = 8, DEVICE_MOST_LANES = 4 };

typedef struct device_case {
    const algo *algorithm;
    plan_collective collective;
    int ranks, root;
    size_t count; /* elements of a block */
    ring_dtype dtype;
    ring_op op;
    uint32_t lanes, threads; /* at most so many lanes; threads of a block, 0: 3 */
    uint32_t frames, window; /* of a box; 0: the most */
    bool in_place;
    bool framed; /* no message is sent by words */
    bool apart;  /* ranks of odd numbers are in another process than those of even ones */
} device_case;

typedef struct device_ranks device_ranks;

/** Limits of lowering are small, so that few elements make several slices and segments. */
device_ranks *device_ranks_new(const device_case *c);
/** Inputs of call number @p call; outputs are poisoned. */
void device_ranks_fill(device_ranks *all, int call);
/** Runs the call on all ranks. @return true if it ended well on all. */
bool device_ranks_launch(device_ranks *all);
/** Fails the test unless each rank has what the collective gives. */
void device_ranks_expect(const device_ranks *all, int call);
void device_ranks_free(device_ranks *all);

/** The call of a rank, to be changed, and how it ended on a lane. */
device_call *device_ranks_call(device_ranks *all, int rank);
const device_verdict *device_ranks_verdict(const device_ranks *all, int rank, uint32_t lane);
uint32_t device_ranks_lanes(const device_ranks *all);
/** Ends the calls of all ranks, also before they begin. */
void device_ranks_abort(device_ranks *all);

#endif
