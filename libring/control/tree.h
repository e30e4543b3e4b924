/* SPDX-License-Identifier: Apache-2.0
 *
 * tree: computes the neighbours of a rank in the tree of control connections. Rank 0 is at the top,
 * and each rank has up to CONTROL_FANOUT children with consecutive numbers.
 */
#ifndef RING_CONTROL_TREE_H
#define RING_CONTROL_TREE_H

#include "control.h"

/** @return the parent of a rank; -1 for rank 0. */
static inline int tree_parent(int rank)
{
    return rank > 0 ? (rank - 1) / CONTROL_FANOUT : -1;
}

/** @return the number of the first child, which exists only if tree_children() is not 0. */
static inline int tree_first_child(int rank)
{
    return rank * CONTROL_FANOUT + 1;
}

/** @return how many children a rank has in a membership of @p size ranks. */
static inline int tree_children(int rank, int size)
{
    const int left = size - tree_first_child(rank);
    return left <= 0 ? 0 : left < CONTROL_FANOUT ? left : CONTROL_FANOUT;
}

#endif
