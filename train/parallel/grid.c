/* SPDX-License-Identifier: Apache-2.0
 * Converts between ranks and coordinates, and makes a communicator for each dimension of the grid.
 */
#include "grid.h"

#include <stdbool.h>
#include <string.h>

#include "errors.h"

enum { PRINTED_MAX = 64 };

train_grid grid_place(int ranks, int rank, int stages, int tensors)
{
    const int shares = ranks / stages / tensors;
    return (train_grid){.stages = stages,
                        .shares = shares,
                        .tensors = tensors,
                        .stage = rank / tensors / shares,
                        .share = rank / tensors % shares,
                        .tensor = rank % tensors};
}

int grid_rank(const train_grid *grid, int stage, int share, int tensor)
{
    return (stage * grid->shares + share) * grid->tensors + tensor;
}

/* ---- Printing ------------------------------------------------------------------------------ */

void grid_print(const train_grid *grid, FILE *out)
{
    const bool small = grid->stages * grid->shares * grid->tensors <= PRINTED_MAX;
    fprintf(out, "rank = (stage * %d + share of the data) * %d + tensor rank%s\n", grid->shares,
            grid->tensors, small ? ":" : "");
    for (int stage = 0; stage < grid->stages && small; stage++) {
        fprintf(out, "  stage %d:", stage);
        for (int share = 0; share < grid->shares; share++) {
            fprintf(out, "%s share %d:", share > 0 ? ";" : "", share);
            for (int tensor = 0; tensor < grid->tensors; tensor++)
                fprintf(out, " %d", grid_rank(grid, stage, share, tensor));
        }
        fputc('\n', out);
    }
}

/* Prints groups of @p length ranks whose numbers are @p stride apart. */
static void print_groups(const char *name, int ranks, int length, int stride, FILE *out)
{
    if (length == 1)
        return;
    fprintf(out, "groups of %s:", name);
    for (int group = 0, printed = 0; group < ranks / length && printed < PRINTED_MAX; group++) {
        const int first = group / stride * stride * length + group % stride;
        fprintf(out, "%s", group > 0 ? "," : "");
        for (int i = 0; i < length && printed < PRINTED_MAX; i++, printed++)
            fprintf(out, " %d", first + i * stride);
    }
    fprintf(out, "%s\n", ranks > PRINTED_MAX ? " …" : "");
}

void grid_print_groups(const train_grid *grid, FILE *out)
{
    const int shares = grid->shares, tensors = grid->tensors;
    const int ranks = grid->stages * shares * tensors;
    print_groups("gradients", ranks, shares, tensors, out);
    print_groups("activations", ranks, grid->stages, shares * tensors, out);
    print_groups("tensor ranks", ranks, tensors, 1, out);
}

/* ---- Places and communicators -------------------------------------------------------------- */

/* Consecutive ranks are consecutive tensor ranks of a share, then of the next share; the last share
 * is followed by the first share of the next stage. */
int grid_shares_of(const train_grid *grid, int first, int count)
{
    const int groups = (first + count - 1) / grid->tensors - first / grid->tensors + 1;
    return groups < grid->shares ? groups : grid->shares;
}

static ring_status split(ring_comm *world, int colour, int key, ring_comm **comm)
{
    return train_ring(world, ring_comm_split(world, colour, key, comm));
}

ring_status grid_join(const train_grid *grid, ring_comm *world, grid_comms *comms)
{
    const int stage = grid->stage, share = grid->share, tensor = grid->tensor;
    *comms = (grid_comms){.world = world, .data = world};
    if (grid->stages == 1 && grid->tensors == 1)
        return RING_OK;
    RING_TRY(split(world, stage * grid->tensors + tensor, share, &comms->data));
    if (grid->stages > 1)
        RING_TRY(split(world, share * grid->tensors + tensor, stage, &comms->pipe));
    if (grid->tensors > 1)
        RING_TRY(split(world, stage * grid->shares + share, tensor, &comms->tensor));
    return RING_OK;
}

void grid_leave(grid_comms *comms)
{
    ring_comm_destroy(comms->tensor);
    ring_comm_destroy(comms->pipe);
    if (comms->data != comms->world)
        ring_comm_destroy(comms->data);
    *comms = (grid_comms){0};
}

ring_status grid_sum(ring_comm *comm, double *sums, size_t count)
{
    const size_t ranks = (size_t)ring_comm_size(comm), rank = (size_t)ring_comm_rank(comm);
    memmove(&sums[rank * count], sums, count * sizeof *sums);
    RING_TRY(train_ring(comm, ring_all_gather(&sums[rank * count], sums, count, RING_FLOAT64, comm,
                                              NULL)));
    for (size_t i = count; i < ranks * count; i++)
        sums[i % count] += sums[i];
    return RING_OK;
}
