/* SPDX-License-Identifier: Apache-2.0
 *
 * shape: the counts and displacements of a v-form call, as one rank gives them. A program keeps its
 * own copy, by which a later call with equal ones finds it.
 */
#ifndef RING_CORE_SHAPE_H
#define RING_CORE_SHAPE_H

#include "program.h"

/** @return "src" or "dst", for messages. */
const char *shape_side_name(int side);
/** Reads a caller's shape: drops arrays that are not for this rank, and sets the facts that all
 *  ranks must agree on and the call's keys in the cache (root, count, digest). O(ranks), nothing is
 *  allocated.
 *  @param[in,out] shape  displs may be NULL: blocks lie one behind the other.
 *  @return RING_OK, or RING_ERR_ARGUMENT: an array is missing. */
ring_status shape_read(call_signature *call, plan_shape *shape, int rank, int ranks);
/** @return true if a call of shape @p given is that of @p kept, a program's. */
bool shape_is_same(const plan_shape *kept, const plan_shape *given, int ranks);
/** Checks and copies the shape of p->call, and finds the bytes of its buffers.
 *  @return RING_OK, RING_ERR_ARGUMENT (blocks overlap, or are more than memory can hold),
 *          RING_ERR_MEMORY. */
ring_status shape_bind(program *p, int ranks);
/** Bytes that the program keeps for it. */
size_t shape_bytes(const program *p, int ranks);

#endif
