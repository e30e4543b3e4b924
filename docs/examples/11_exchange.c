/* SPDX-License-Identifier: Apache-2.0
 * All ranks send to all ranks, including themselves, in one group, so that no call waits for the
 * end of another one.
 */
#include <ring/ring.h>

#include <stdio.h>
#include <stdlib.h>

enum {
    COUNT = 100000
}; /* numbers for each rank: too many for a send to return without its receiver */

static void check(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "exchange: %s\n", ring_last_error(NULL));
    exit(1);
}

static float *vector(int ranks)
{
    void *memory;
    check(ring_mem_alloc(&memory, (size_t)ranks * COUNT * sizeof(float)));
    return memory;
}

int main(void)
{
    ring_comm *comm;
    double sum = 0;
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */
    const int rank = ring_comm_rank(comm), ranks = ring_comm_size(comm);
    float *out = vector(ranks), *in = vector(ranks);
    for (int i = 0; i < ranks * COUNT; i++)
        out[i] = (float)rank;
    check(ring_group_start());
    for (int peer = 0; peer < ranks; peer++) {
        const size_t block = (size_t)peer * COUNT;
        check(ring_send(out + block, COUNT, RING_FLOAT32, peer, comm, NULL));
        check(ring_recv(in + block, COUNT, RING_FLOAT32, peer, comm, NULL));
    }
    check(ring_group_end()); /* all of them start, and are waited for */
    for (int peer = 0; peer < ranks; peer++)
        sum += (double)in[(size_t)peer * COUNT + COUNT - 1];
    if (rank == 0)
        printf("exchanged between %d ranks; they add to %g\n", ranks, sum);
    check(ring_mem_free(in));
    check(ring_mem_free(out));
    ring_comm_destroy(comm);
    return 0;
}
