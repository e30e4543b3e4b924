/* SPDX-License-Identifier: Apache-2.0
 * algo_build: provides the parts that several algorithms share, and declares each algorithm's
 * functions for the table in algo.c. */
#ifndef RING_ALGO_BUILD_H
#define RING_ALGO_BUILD_H

#include "algo.h"

/** Appends the steps of a plan for 2 or more ranks. */
typedef void (*algo_writer)(plan *p, const plan_world *world);

/** Builds a plan: checks the call, lets @p write append the steps, and seals the plan. Plans of a
 *  single rank need no @p write. */
plan *algo_build(const char *name, const algo_call *call, algo_writer write);

/** @return the first chunk of the block that rank @p from sends to rank @p to. In collectives
 *  with one block for each rank, only one of the two ranks matters; 0 if the collective has no
 *  blocks. */
int algo_block(const plan *p, int from, int to);
/** @return the number of chunks of a block. */
int algo_block_chunks(const plan *p);

/** @return the rank that is @p steps after this one on the ring, or before it if negative. */
int algo_neighbour(const plan *p, int steps);

/** Sets the plan's fill, the hops before the last rank has data, to @p hops, of which at most @p
 * far are between hosts. */
void algo_fill(plan *p, int hops, int far);

/** @return the number of chunks of a pipeline: few enough to amortise messages, and enough to fill
 *  the pipeline. */
int algo_pipeline_chunks(size_t bytes);

/** Writes a broadcast that passes every chunk from rank to rank: from the root round to the rank
 *  before the root. */
void algo_forward(plan *p, const plan_world *world);

/** Writes one or two steps for a chunk. @param of  the algorithm's own data. */
typedef void (*algo_chunk_steps)(plan *p, const void *of, int chunk);
/** Writes @p steps for chunks [chunk, chunk + times). */
void algo_each_chunk(plan *p, int times, algo_chunk_steps steps, const void *of, int chunk);
/** Interleaves the two directions of a pipeline: writes @p up for all chunks, and @p down for
 *  chunks [first, first + count). The down step of a chunk comes @p lag up steps after the up step
 *  of that chunk. */
void algo_interleave(plan *p, algo_chunk_steps up, algo_chunk_steps down, const void *of, int first,
                     int count, int lag);

/* ---- The functions of the table ---- */

bool algo_any_collective(plan_collective collective);
/** @return true for collectives in which several ranks receive the same data or sums. A block for a
 *  single rank is best sent to it directly, because a relay only adds bytes. */
bool algo_shared_collective(plan_collective collective);
/** @return true for prefix collectives, in which each rank gets the sum over ranks 0 to itself. */
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
