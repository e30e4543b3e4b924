/* SPDX-License-Identifier: Apache-2.0
 * launch: the launcher of this process, its rank and the number of ranks. */
#ifndef RING_RENDEZVOUS_LAUNCH_H
#define RING_RENDEZVOUS_LAUNCH_H

#include "base.h"

/** Launch found in the environment. */
typedef struct launch_info {
    int rank, size, local_rank; /* local_rank -1: unknown                      */
    char launcher[32];          /* "ringrun", "torchrun", "Open MPI", "none" … */
    char address[256];          /* of rank 0, "" if to be found another way */
    int port;
    bool agent_holds_port; /* torchrun: never bind it                     */
    int local_size;        /* ranks on this host, 0: unknown              */
    char job[256];         /* tells it from other jobs: RING_JOB_ID, else the launcher's number; ""
                              if there is none. Part of the key */
} launch_info;

/** @return RING_OK; RING_ERR_CONFIG for contradictions, with the variables named. */
ring_status launch_detect(launch_info *launch);
/** @return true if the launcher says that all ranks are on this host. */
bool launch_on_one_host(const launch_info *launch);

#endif
