/* SPDX-License-Identifier: Apache-2.0
 * Helpers of the algorithms, and their functions for the table. */
#ifndef RING_ALGO_BUILD_H
#define RING_ALGO_BUILD_H

#include "algo.h"

/** Writes a plan's steps, for 2 ranks or more. */
typedef void (*algo_writer)(plan *p, const plan_world *world);

/** Builds a plan: checks the call, lets @p write append the steps (one rank alone is done
 *  here), seals it. */
plan *algo_build(const char *name, const algo_call *call, algo_writer write);

/** The first chunk of the block that rank @p from gives, or rank @p to gets, or both; 0 if there
 *  are no blocks. */
int algo_block(const plan *p, int from, int to);
/** Chunks of a block. */
int algo_block_chunks(const plan *p);

/** The rank @p steps behind (or, negative, before) this one on the ring. */
int algo_neighbour(const plan *p, int steps);

/** Sets the plan's fill: @p hops from rank to rank, at most @p far of them between hosts. */
void algo_fill(plan *p, int hops, int far);

/** Chunks of a pipeline: long enough to amortise a message, and enough to fill it. */
int algo_pipeline_chunks(size_t bytes);

/** Broadcast: every chunk goes from rank to rank, from the root to the rank before it. */
void algo_forward(plan *p, const plan_world *world);

/** Writes one or two steps for one chunk. @p of  data of the algorithm. */
typedef void (*algo_chunk_steps)(plan *p, const void *of, int chunk);
/** @p steps for chunks [chunk, chunk + times). */
void algo_each_chunk(plan *p, int times, algo_chunk_steps steps, const void *of, int chunk);
/** @p up for all chunks; @p down for chunks [first, first + count), each @p lag ups behind its
 *  own. */
void algo_interleave(plan *p, algo_chunk_steps up, algo_chunk_steps down, const void *of, int first,
                     int count, int lag);

/* The algorithms' parts of the table. */
bool algo_any_collective(plan_collective collective);
/** True for collectives whose vector, or sums of it, go to several ranks alike. A block for one
 *  rank alone is best sent straight to it: a relay only adds bytes. */
bool algo_shared_collective(plan_collective collective);
/** True for sums of the ranks up to this one. */
bool algo_is_prefix(plan_collective collective);

bool algo_direct_supports(plan_collective collective);
int algo_direct_chunks(plan_collective collective, const plan_world *world, size_t bytes);
plan *algo_direct_build(const algo_call *call);

int algo_ring_chunks(plan_collective collective, const plan_world *world, size_t bytes);
plan *algo_ring_build(const algo_call *call);

bool algo_chain_supports(plan_collective collective);
int algo_chain_chunks(plan_collective collective, const plan_world *world, size_t bytes);
plan *algo_chain_build(const algo_call *call);

bool algo_halving_supports(plan_collective collective);
int algo_halving_chunks(plan_collective collective, const plan_world *world, size_t bytes);
plan *algo_halving_build(const algo_call *call);

bool algo_tree_supports(plan_collective collective);
int algo_tree_chunks(plan_collective collective, const plan_world *world, size_t bytes);
plan *algo_tree_build(const algo_call *call);

bool algo_hierarchical_supports(plan_collective collective);
int algo_hierarchical_chunks(plan_collective collective, const plan_world *world, size_t bytes);
plan *algo_hierarchical_build(const algo_call *call);

int algo_oneshot_chunks(plan_collective collective, const plan_world *world, size_t bytes);
plan *algo_oneshot_build(const algo_call *call);

#endif
