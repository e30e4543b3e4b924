/* SPDX-License-Identifier: Apache-2.0
 *
 * grid: ranks as a rectangle of pipeline stages and shares of the data. As in DeepSpeed's
 * topology, rank = stage * shares + share: the ranks of a stage are neighbours.
 */
#ifndef TRAIN_GRID_H
#define TRAIN_GRID_H

#include <ring/ring.h>

typedef struct train_grid {
    int stages, shares; /* their product is the number of ranks */
    int stage, share;   /* of this rank */
} train_grid;

/** @return the place of @p rank; @p stages divides @p ranks. */
train_grid grid_place(int ranks, int rank, int stages);

/** Collective over @p world: the ranks of this rank's stage, which share its data out, and those
 *  with this rank's share, by their stages. With one stage @p data is @p world itself and @p pipe
 *  is NULL. End with grid_leave(). */
ring_status grid_join(const train_grid *grid, ring_comm *world, ring_comm **data, ring_comm **pipe);
void grid_leave(ring_comm *world, ring_comm *data, ring_comm *pipe);

#endif
