/* SPDX-License-Identifier: Apache-2.0
 *
 * launch: detects the launcher that has started this process. Launchers pass the rank, the number
 * of ranks and the address of rank 0 in environment variables with different names.
 */
#ifndef RING_RENDEZVOUS_LAUNCH_H
#define RING_RENDEZVOUS_LAUNCH_H

#include "base.h"

/** The launch that was found in the environment. */
typedef struct launch_info {
    int rank, size, local_rank; /* local_rank -1: unknown */
    char launcher[32];          /* "ringrun", "torchrun", "Open MPI", "none" … */
    char address[256];          /* of rank 0; "" if there is another way to find it */
    int port;
    bool agent_holds_port; /* torchrun's agent listens on the port, so rank 0 must not bind it */
    int local_size;        /* ranks on this host, 0: unknown */
    char job[256];         /* RING_JOB_ID, else the launcher's job id, else "". It is part of the
                              key, so that jobs do not mix */
} launch_info;

/** @return RING_OK; RING_ERR_CONFIG if variables contradict each other; the text names them. */
ring_status launch_detect(launch_info *launch);
/** @return true if all ranks are on this host, according to the launcher. */
bool launch_on_one_host(const launch_info *launch);

#endif
