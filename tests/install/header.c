/* SPDX-License-Identifier: Apache-2.0
 * A communicator of one rank, in the C that every standard of C and C++ since 1989 understands. */
#include <ring/ring.h>

int main(void)
{
    ring_comm *comm = NULL;
    ring_call call = RING_CALL_INIT;
    ring_comm_info info;
    float x = 2;
    int ok;
    call.timeout = 10;
    info.size = sizeof info;
    ok = ring_comm_init_env(&comm) == RING_OK &&
         ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, &call) == RING_OK &&
         ring_comm_get_info(comm, &info) == RING_OK && info.ranks == 1 && x == 2;
    ring_comm_destroy(comm);
    return !ok;
}
