/* SPDX-License-Identifier: Apache-2.0
 * A vector in memory that the ranks of a host share without copies: every rank contributes its
 * number, all get the sum.
 *
 *     ringrun -n 4 hello
 */
#include <ring/ring.h>
#include <stdio.h>
#include <stdlib.h>

static void check(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "hello: %s: %s\n", ring_status_string(status), ring_last_error(NULL));
    exit(1);
}

int main(void)
{
    enum { COUNT = 1000 };
    ring_comm *comm;
    void *memory;
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */
    check(ring_mem_alloc(&memory, COUNT * sizeof(float)));
    float *x = memory;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)ring_comm_rank(comm);
    check(ring_all_reduce(x, x, COUNT, RING_FLOAT32, RING_SUM, comm, NULL));
    if (ring_comm_rank(comm) == 0)
        printf("sum of %d ranks: %g\n", ring_comm_size(comm), (double)x[COUNT - 1]);
    check(ring_mem_free(memory));
    ring_comm_destroy(comm);
    return 0;
}
