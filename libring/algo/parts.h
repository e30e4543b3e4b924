/* SPDX-License-Identifier: Apache-2.0
 * What algorithms share, and the list of them. */
#ifndef RING_ALGO_PARTS_H
#define RING_ALGO_PARTS_H

#include "algo.h"

typedef struct algo_call {
    plan_collective collective;
    int ranks, rank, root, chunks;
} algo_call;

/** Builds a plan: checks the call, lets @p write append the steps (2 ranks or more; one
 *  rank alone is done here), seals it. */
plan *algo_build(const char *name, algo_call call, void (*write)(plan *p));

/** The rank @p steps behind (or, negative, before) this one on the ring. */
int algo_neighbour(const plan *p, int steps);

/** Broadcast: every chunk goes from rank to rank, root first, its predecessor last. */
void algo_forward(plan *p);

/* The algorithms' parts of the table. */
bool algo_ring_supports(plan_collective collective);
int algo_ring_chunks(plan_collective collective, int ranks, size_t bytes);
plan *algo_ring_build(plan_collective collective, int ranks, int rank, int root, int chunks);

bool algo_direct_supports(plan_collective collective);
int algo_direct_chunks(plan_collective collective, int ranks, size_t bytes);
plan *algo_direct_build(plan_collective collective, int ranks, int rank, int root, int chunks);

bool algo_chain_supports(plan_collective collective);
int algo_chain_chunks(plan_collective collective, int ranks, size_t bytes);
plan *algo_chain_build(plan_collective collective, int ranks, int rank, int root, int chunks);

#endif
