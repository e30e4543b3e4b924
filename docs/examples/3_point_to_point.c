/* SPDX-License-Identifier: Apache-2.0
 * Each rank sends a vector to the next rank and receives one from the rank before it.
 *
 *     ringrun -n 4 point_to_point
 *
 * All ranks send at the same time. A send of more than 128 KiB returns when it has been received,
 * so the receive is started first, with a handle, and waited for afterwards.
 */
#include <ring/ring.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 256 * 1024 };

static void check(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "point_to_point: %s: %s\n", ring_status_string(status), ring_last_error(NULL));
    exit(1);
}

static float *vector(void)
{
    void *memory;
    check(ring_mem_alloc(&memory, COUNT * sizeof(float)));
    return memory;
}

int main(void)
{
    ring_comm *comm;
    ring_work *receiving;
    ring_call call = RING_CALL_INIT;
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */
    const int rank = ring_comm_rank(comm), ranks = ring_comm_size(comm);
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    float *out = vector(), *in = vector();
    for (int i = 0; i < COUNT; i++)
        out[i] = (float)rank;
    call.work = &receiving;
    check(ring_recv(in, COUNT, RING_FLOAT32, previous, comm, &call)); /* returns at once */
    check(ring_send(out, COUNT, RING_FLOAT32, next, comm, NULL));
    check(ring_wait(&receiving));
    if (rank == 0)
        printf("rank 0 received %d numbers from rank %g\n", COUNT, (double)in[COUNT - 1]);
    check(ring_mem_free(in));
    check(ring_mem_free(out));
    ring_comm_destroy(comm);
    return 0;
}
