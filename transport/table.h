/* SPDX-License-Identifier: Apache-2.0
 *
 * The transports there are; each is defined in the folder of its name. A new transport is
 * one line here, one in table.c and one in CMakeLists.txt. */
#ifndef RING_TRANSPORT_TABLE_H
#define RING_TRANSPORT_TABLE_H

#include "transport.h"

extern const transport transport_loop;  /* ranks as threads of one process */
extern const transport transport_shm;   /* processes of one host */
extern const transport transport_verbs; /* between hosts, over InfiniBand or RoCE */
extern const transport transport_ucx;   /* whatever UCX finds, when asked for */
extern const transport transport_tcp;   /* anywhere */

#endif
