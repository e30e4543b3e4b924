/* SPDX-License-Identifier: Apache-2.0
 * Going on without ranks that die: each round adds one from every rank; in round 3 the last rank ends
 * without a word. The others shrink their communicator, and go on from the earliest round that
 * one of them has not finished: some may have come further than others.
 *
 *     for r in 0 1 2; do RANK=$r WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
 *         RING_INSECURE=1 ./survive & done; wait
 *
 * (ringrun ends all ranks when one fails; for this, ranks are started on their own.)
 */
#include <ring/ring.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 6, LAST_WORDS = 3 };

static int give_up(void)
{
    fprintf(stderr, "survive: %s\n", ring_last_error(NULL));
    return 1;
}

/* Replaces the communicator by one of those who are left, and agrees on the round. */
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
        return give_up();
    for (int round = 0; round < ROUNDS;) {
        if (round == LAST_WORDS && ring_comm_size(comm) == 3 && ring_comm_rank(comm) == 2)
            _exit(0); /* no goodbye: to the others this rank is lost */
        int ranks = 1;
        ring_status status = ring_all_reduce(&ranks, &ranks, 1, RING_INT32, RING_SUM, comm, NULL);
        if (status == RING_OK) {
            if (ring_comm_rank(comm) == 0)
                printf("round %d: %d ranks\n", round, ranks);
            round++;
        } else if (go_on(&comm, &round) != RING_OK) {
            return give_up();
        }
    }
    ring_comm_destroy(comm);
    return 0;
}
