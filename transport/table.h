/* SPDX-License-Identifier: Apache-2.0
 *
 * table: declares all transports; each is defined in the folder of the same name. To add a
 * transport, add one line here, one in table.c and one in CMakeLists.txt. */
#ifndef RING_TRANSPORT_TABLE_H
#define RING_TRANSPORT_TABLE_H

#include "transport.h"

extern const transport transport_loop;  /* between threads of one process */
extern const transport transport_shm;   /* between processes of one host */
extern const transport transport_verbs; /* between hosts, over InfiniBand or RoCE */
extern const transport transport_ucx;   /* over any network that UCX finds, only on request */
extern const transport transport_tcp;   /* between any two ranks */

#endif
