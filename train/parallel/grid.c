/* SPDX-License-Identifier: Apache-2.0
 * Places of ranks, and a communicator for each row and column. */
#include "grid.h"

#include "errors.h"

train_grid grid_place(int ranks, int rank, int stages)
{
    const int shares = ranks / stages;
    return (train_grid){.stages = stages,
                        .shares = shares,
                        .stage = rank / shares,
                        .share = rank % shares};
}

ring_status grid_join(const train_grid *grid, ring_comm *world, ring_comm **data, ring_comm **pipe)
{
    *data = world;
    *pipe = NULL;
    if (grid->stages == 1)
        return RING_OK;
    RING_TRY(train_ring(world, ring_comm_split(world, grid->stage, grid->share, data)));
    return train_ring(world, ring_comm_split(world, grid->share, grid->stage, pipe));
}

void grid_leave(ring_comm *world, ring_comm *data, ring_comm *pipe)
{
    ring_comm_destroy(pipe);
    if (data != world)
        ring_comm_destroy(data);
}
