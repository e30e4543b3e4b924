/* SPDX-License-Identifier: Apache-2.0
 * The smallest program: every rank gives 1 and gets the number of ranks.
 *
 *     ringrun -n 4 first
 */
#include <ring/ring.h>
#include <stdio.h>

int main(void)
{
    ring_comm *comm;
    float x = 1;
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */
    if (ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, NULL) != RING_OK) {
        fprintf(stderr, "first: %s\n", ring_last_error(NULL));
        return 1;
    }
    if (ring_comm_rank(comm) == 0)
        printf("ranks: %g\n", (double)x);
    ring_comm_destroy(comm);
    return 0;
}
