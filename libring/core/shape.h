/* SPDX-License-Identifier: Apache-2.0
 *
 * shape: reads and checks the counts and displacements that a rank passes to a v-form. A program
 * keeps a copy of them, so that a later call with equal counts and displacements finds the program.
 */
#ifndef RING_CORE_SHAPE_H
#define RING_CORE_SHAPE_H

#include "program.h"

/** @return "src" or "dst", for messages. */
const char *shape_side_name(int side);
/** Reads a caller's shape. Drops arrays that this rank does not use, and sets the call's root,
 *  count and digest, which ranks compare and by which the cache finds the program. O(ranks);
 *  allocates nothing.
 *  @param[in,out] shape  the caller's arrays. displs may be NULL if the blocks are contiguous.
 *  @return RING_OK, or RING_ERR_ARGUMENT if an array is missing. */
ring_status shape_read(call_signature *call, plan_shape *shape, int rank, int ranks);
/** @return true if the shape @p given of a call equals the shape @p kept of a program. */
bool shape_is_same(const plan_shape *kept, const plan_shape *given, int ranks);
/** Checks and copies the shape of p->call, and computes the sizes of its buffers.
 *  @return RING_OK, RING_ERR_ARGUMENT (blocks overlap, or are more than memory can hold),
 *          RING_ERR_MEMORY. */
ring_status shape_bind(program *p, int ranks);
/** @return the bytes that the program keeps for its shape. */
size_t shape_bytes(const program *p, int ranks);

#endif
