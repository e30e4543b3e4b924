/* SPDX-License-Identifier: Apache-2.0
 * Takes the time after a barrier. If all ranks are on one host, they share its clock and use the
 * time of rank 0. */
#include "common_clock.h"

#include "clock.h"
#include "errors.h"

ring_status common_clock_zero(ring_comm *comm, double *zero)
{
    ring_comm_info info = {.size = sizeof info};
    RING_TRY(train_ring(comm, ring_comm_get_info(comm, &info)));
    RING_TRY(train_ring(comm, ring_barrier(comm, NULL)));
    *zero = train_now();
    if (info.hosts > 1)
        return RING_OK;
    return train_ring(comm, ring_broadcast(zero, zero, 1, RING_FLOAT64, 0, comm, NULL));
}
