/* SPDX-License-Identifier: Apache-2.0
 * Shows how ranks continue after one of them dies. Each round adds one from every rank; before
 * round 3 the last rank ends without leaving. The others shrink their communicator and continue
 * from the earliest round that one of them has not finished, because some may be further than
 * others.
 *
 *     ringrun -n 4 survive
 *
 * A rank that ends with exit status 0 does not make ringrun stop the others. One that is killed
 * does; to survive that, start the ranks on their own:
 *
 *     for r in 0 1 2; do RANK=$r WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
 *         ./survive & done; wait
 */
#include <ring/ring.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 6, LAST_WORDS = 3 };

static int give_up(void)
{
    fprintf(stderr, "survive: %s\n", ring_last_error(NULL));
    return 1;
}

/* Replaces the communicator by one of the survivors, and agrees on the round. */
static ring_status go_on(ring_comm **comm, int *round)
{
    ring_comm *left;
    const ring_status status = ring_comm_shrink(*comm, &left);
    if (status != RING_OK)
        return status;
    ring_comm_destroy(*comm);
    *comm = left;
    return ring_all_reduce(round, round, 1, RING_INT32, RING_MIN, left, NULL);
}

int main(void)
{
    ring_comm *comm;
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */
    const int first_size = ring_comm_size(comm);
    const int dies = first_size > 1 && ring_comm_rank(comm) == first_size - 1;
    for (int round = 0; round < ROUNDS;) {
        if (round == LAST_WORDS && dies)
            _Exit(0); /* without a goodbye, so the others treat this rank as lost */
        int ranks = 1;
        if (ring_all_reduce(&ranks, &ranks, 1, RING_INT32, RING_SUM, comm, NULL) == RING_OK)
            round++;
        else if (go_on(&comm, &round) != RING_OK)
            return give_up();
    }
    if (ring_comm_rank(comm) == 0)
        printf("%d rounds: begun by %d ranks, ended by %d\n", ROUNDS, first_size,
               ring_comm_size(comm));
    ring_comm_destroy(comm);
    return 0;
}
