/* SPDX-License-Identifier: Apache-2.0
 * Has several calls in flight at once: each is started with a handle and returns immediately; the
 * program computes meanwhile and then waits for all of them.
 *
 *     ringrun -n 4 nonblocking
 *
 * Every rank starts the calls in the same order. It may wait for them in any order.
 */
#include <ring/ring.h>
#include <stdio.h>
#include <stdlib.h>

enum { VECTORS = 4, COUNT = 100 * 1000 };

static void check(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "nonblocking: %s: %s\n", ring_status_string(status), ring_last_error(NULL));
    exit(1);
}

/* Stands for the program's own work. */
static double compute(void)
{
    double sum = 0;
    for (int i = 1; i <= 1000 * 1000; i++)
        sum += 1.0 / ((double)i * i);
    return sum;
}

int main(void)
{
    ring_comm *comm;
    ring_work *works[VECTORS];
    float *vectors[VECTORS];
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */
    for (int v = 0; v < VECTORS; v++) {
        void *memory;
        check(ring_mem_alloc(&memory, COUNT * sizeof(float)));
        vectors[v] = memory;
        for (int i = 0; i < COUNT; i++)
            vectors[v][i] = (float)v;
        ring_call call = RING_CALL_INIT;
        call.work = &works[v];
        check(ring_all_reduce(vectors[v], vectors[v], COUNT, RING_FLOAT32, RING_SUM, comm, &call));
    }
    const double computed = compute(); /* vectors[] belong to the library meanwhile */
    check(ring_wait_all(works, VECTORS));
    if (ring_comm_rank(comm) == 0)
        printf("computed %.3f; the last of %d vectors adds to %g\n", computed, VECTORS,
               (double)vectors[VECTORS - 1][0]);
    for (int v = 0; v < VECTORS; v++)
        check(ring_mem_free(vectors[v]));
    ring_comm_destroy(comm);
    return 0;
}
