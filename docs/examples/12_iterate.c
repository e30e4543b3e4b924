/* SPDX-License-Identifier: Apache-2.0
 * A relaxation on a ring of ranks: the same three calls in each round, prepared once.
 */
#include <ring/ring.h>

#include <stdio.h>
#include <stdlib.h>

static void check(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "iterate: %s\n", ring_last_error(NULL));
    exit(1);
}

int main(void)
{
    ring_comm *comm;
    ring_prepared *to_next, *from_last, *sum_all;
    ring_call call = RING_CALL_INIT;
    float mine, last = 0;
    double change = 0;
    int round = 0;
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */
    const int rank = ring_comm_rank(comm), ranks = ring_comm_size(comm);
    mine = rank == 0 ? (float)ranks : 0;

    call.prepared = &to_next; /* nothing is sent here */
    check(ring_send(&mine, 1, RING_FLOAT32, (rank + 1) % ranks, comm, &call));
    call.prepared = &from_last;
    check(ring_recv(&last, 1, RING_FLOAT32, (rank + ranks - 1) % ranks, comm, &call));
    call.prepared = &sum_all;
    check(ring_all_reduce(&change, &change, 1, RING_FLOAT64, RING_SUM, comm, &call));

    do {
        check(ring_group_start());
        check(ring_prepared_start(to_next, NULL));
        check(ring_prepared_start(from_last, NULL));
        check(ring_group_end());
        change = ((double)last - (double)mine) * ((double)last - (double)mine);
        mine = (mine + last) / 2;
        check(ring_prepared_start(sum_all, NULL)); /* the same bits on all ranks */
        round++;
    } while (change > 1e-6);

    if (rank == 0)
        printf("%d ranks are level after %d rounds: %.3f\n", ranks, round, (double)mine);
    ring_prepared_destroy(to_next);
    ring_prepared_destroy(from_last);
    ring_prepared_destroy(sum_all);
    ring_comm_destroy(comm);
    return 0;
}
