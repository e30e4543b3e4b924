/* SPDX-License-Identifier: Apache-2.0
 *
 * launch: detects the launcher that has started this process. Each launcher has its own names for
 * the environment variables with the rank, the number of ranks and the address of rank 0.
 */
#ifndef RING_RENDEZVOUS_LAUNCH_H
#define RING_RENDEZVOUS_LAUNCH_H

#include "base.h"

/** The launch that was found in the environment. */
typedef struct launch_info {
    int rank, size, local_rank; /* local_rank -1: unknown */
    char launcher[32];          /* "ringrun", "torchrun", "Open MPI", "none" … */
    char address[256];          /* MASTER_ADDR; "": rank 0 is found through id_exchange.h */
    int port;                   /* MASTER_PORT */
    bool agent_holds_port; /* torchrun's agent listens on the port, so rank 0 must not bind it */
    int local_size;        /* the number of ranks on this host; 0: unknown */
    char job[256];         /* RING_JOB_ID, else the launcher's job id, else "". The key depends on
                              it, so that ranks of different jobs do not connect */
} launch_info;

/** Reads the launcher's variables. Without a launcher the result is one rank, rank 0 of 1.
 *  @return RING_OK; RING_ERR_CONFIG if variables are invalid or incomplete, which the text names.
 */
ring_status launch_detect(launch_info *launch);
/** @return true if all ranks are on this host, according to the launcher. */
bool launch_on_one_host(const launch_info *launch);

#endif
