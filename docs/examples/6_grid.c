/* SPDX-License-Identifier: Apache-2.0
 * Arranges ranks in a grid, as for pipelines with data parallelism: each row and each column is a
 * communicator of its own.
 *
 *     ringrun -n 4 grid 2            # 2 columns
 */
#include <ring/ring.h>
#include <stdio.h>
#include <stdlib.h>

static void check(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "grid: %s: %s\n", ring_status_string(status), ring_last_error(NULL));
    exit(1);
}

static int sum_of_ranks(int rank, ring_comm *comm)
{
    int sum = rank;
    check(ring_all_reduce(&sum, &sum, 1, RING_INT32, RING_SUM, comm, NULL));
    return sum;
}

int main(int argc, char **argv)
{
    const int columns = argc > 1 ? atoi(argv[1]) : 2;
    ring_comm *all, *row, *column;
    if (ring_comm_init_env(&all) != RING_OK)
        return 1; /* the reason was printed */
    const int rank = ring_comm_rank(all);
    if (columns < 1 || ring_comm_size(all) % columns != 0) {
        fprintf(stderr, "grid: %d ranks do not fill %d columns\n", ring_comm_size(all), columns);
        return 1;
    }
    check(ring_comm_split(all, rank / columns, 0, &row)); /* same colour: same communicator */
    check(ring_comm_split(all, rank % columns, 0, &column));
    const int in_row = sum_of_ranks(rank, row), in_column = sum_of_ranks(rank, column);
    if (rank == 0)
        printf("%d rows of %d; the ranks of row 0 add to %d, of column 0 to %d\n",
               ring_comm_size(column), ring_comm_size(row), in_row, in_column);
    ring_comm_destroy(column);
    ring_comm_destroy(row);
    ring_comm_destroy(all);
    return 0;
}
