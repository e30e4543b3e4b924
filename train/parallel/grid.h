/* SPDX-License-Identifier: Apache-2.0
 *
 * grid: describes ranks as a box of pipeline stages, data-parallel ranks (shares of the data) and
 * tensor ranks. As in DeepSpeed's topology, rank = (stage * shares + share) * tensors + tensor, so
 * the ranks of a stage are neighbours, and within a stage so are the tensor ranks that compute the
 * same samples together.
 */
#ifndef TRAIN_GRID_H
#define TRAIN_GRID_H

#include <ring/ring.h>
#include <stdio.h>

typedef struct train_grid {
    int stages, shares, tensors; /* their product is the number of ranks */
    int stage, share, tensor;    /* of this rank */
} train_grid;

/** Communicators of the ranks that differ from this one in one of the three alone. */
typedef struct grid_comms {
    ring_comm *world;  /* borrowed; all ranks */
    ring_comm *data;   /* by their shares; world itself if there is nothing else */
    ring_comm *pipe;   /* by their stages; NULL with one */
    ring_comm *tensor; /* NULL with one tensor rank */
} grid_comms;

/** @return the place of @p rank; @p stages * @p tensors divides @p ranks. */
train_grid grid_place(int ranks, int rank, int stages, int tensors);

/** @return the rank at that place. */
int grid_rank(const train_grid *grid, int stage, int share, int tensor);

/** Prints which ranks stand where, a line a stage; nothing but the rule for more than 64 ranks. */
void grid_print(const train_grid *grid, FILE *out);

/** Prints the groups that exchange gradients, activations and sums of tensor ranks, as far as there
 *  are such exchanges. */
void grid_print_groups(const train_grid *grid, FILE *out);

/** @return how many data-parallel ranks the @p count ranks from @p first on are. */
int grid_shares_of(const train_grid *grid, int first, int count);

/** Collective over @p world. End with grid_leave() whatever the result. */
ring_status grid_join(const train_grid *grid, ring_comm *world, grid_comms *comms);
void grid_leave(grid_comms *comms);

/** Collective over @p comm: sums in the order of its ranks.
 *  @param sums  [ranks, count]; each rank gives the first row, which becomes the sum. */
ring_status grid_sum(ring_comm *comm, double *sums, size_t count);

#endif
