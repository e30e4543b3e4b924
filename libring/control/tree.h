/* SPDX-License-Identifier: Apache-2.0
 *
 * tree: computes neighbours in the tree along which cards and barriers travel. Rank 0 is at the
 * top, and each rank has up to CONTROL_FANOUT children with consecutive numbers.
 */
#ifndef RING_CONTROL_TREE_H
#define RING_CONTROL_TREE_H

#include "control.h"

/** @return -1 for rank 0. */
static inline int tree_parent(int rank)
{
    return rank > 0 ? (rank - 1) / CONTROL_FANOUT : -1;
}

static inline int tree_first_child(int rank)
{
    return rank * CONTROL_FANOUT + 1;
}

/** @return the number of children, which are numbered from the first one. */
static inline int tree_children(int rank, int size)
{
    const int left = size - tree_first_child(rank);
    return left <= 0 ? 0 : left < CONTROL_FANOUT ? left : CONTROL_FANOUT;
}

#endif
