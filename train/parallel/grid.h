/* SPDX-License-Identifier: Apache-2.0
 *
 * grid: arranges ranks as a three-dimensional grid of pipeline stages, data-parallel ranks (each
 * with a share of the data) and tensor ranks. As in DeepSpeed's topology,
 * rank = (stage * shares + share) * tensors + tensor, so the ranks of a stage have consecutive
 * numbers, and so have the tensor ranks that compute the same samples.
 */
#ifndef TRAIN_GRID_H
#define TRAIN_GRID_H

#include <ring/ring.h>
#include <stdio.h>

typedef struct train_grid {
    int stages, shares, tensors; /* size of each dimension; their product is the number of ranks */
    int stage, share, tensor;    /* coordinates of this rank */
} train_grid;

/** Communicators along the three dimensions: each has the ranks that differ from this rank in one
 *  coordinate only. */
typedef struct grid_comms {
    ring_comm *world; /* all ranks; borrowed */
    ring_comm *data; /* ranks with other shares; world itself if the other dimensions have size 1 */
    ring_comm *pipe; /* ranks of other stages; NULL if there is only one stage */
    ring_comm *tensor; /* other tensor ranks; NULL if there is only one */
} grid_comms;

/** @return the grid with the coordinates of @p rank. @p stages * @p tensors must divide @p ranks.
 */
train_grid grid_place(int ranks, int rank, int stages, int tensors);

/** @return the rank at these coordinates. */
int grid_rank(const train_grid *grid, int stage, int share, int tensor);

/** Prints the formula for a rank's number, and for up to 64 ranks a line for each stage with its
 *  ranks. */
void grid_print(const train_grid *grid, FILE *out);

/** Prints the groups of ranks that exchange gradients, activations and sums of tensor ranks. Groups
 *  of one rank are left out. */
void grid_print_groups(const train_grid *grid, FILE *out);

/** @return how many different shares of the data ranks @p first to @p first + @p count - 1 have. */
int grid_shares_of(const train_grid *grid, int first, int count);

/** Splits @p world into the communicators of the grid. Collective over @p world. End with
 *  grid_leave() whatever the result. */
ring_status grid_join(const train_grid *grid, ring_comm *world, grid_comms *comms);
void grid_leave(grid_comms *comms);

/** Sums @p count numbers over the ranks of @p comm, in the order of the ranks, so that all of them
 *  get the same bits. Collective over @p comm.
 *  @param[in,out] sums  [ranks, count] the first row has this rank's numbers, and the sums on
 * return; the other rows are scratch memory. */
ring_status grid_sum(ring_comm *comm, double *sums, size_t count);

#endif
