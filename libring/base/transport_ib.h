/* SPDX-License-Identifier: Apache-2.0
 *
 * transport_ib: holds the user's options for InfiniBand and RoCE. The settings fill this struct
 * from variables, and transports use it as it is; it is in base because neither may include the
 * other.
 */
#ifndef RING_TRANSPORT_IB_H
#define RING_TRANSPORT_IB_H

#include "pci_distance.h"

#include <stdbool.h>

typedef struct transport_ib {
    bool disabled;         /* RING_IB_DISABLE                                                 */
    char hca[128];         /* RING_IB_HCA: devices and ports as in NCCL_IB_HCA; "": all       */
    int gid_index;         /* RING_IB_GID_INDEX; -1: chosen by the transport                  */
    const char *gid_from;  /* the other library's variable that sets gid_index: a port without
                              that entry then ignores it. NULL: there the entry is an error   */
    int pkey_index;        /* RING_IB_PKEY: entry of the port's P_Key table                   */
    int service_level;     /* RING_IB_SL: for InfiniBand                                      */
    int traffic_class;     /* RING_IB_TC: for RoCE, DSCP and ECN                              */
    int timeout;           /* RING_IB_TIMEOUT of a packet: 4.096 us * 2^timeout               */
    int retries;           /* RING_IB_RETRY_CNT: before a queue pair fails                    */
    bool relaxed;          /* RING_IB_PCI_RELAXED_ORDERING: payload may be written in any order */
    pci_distance farthest; /* RING_NET_GDR_LEVEL: from an accelerator to an adapter that accesses
                              its memory */
} transport_ib;

#define TRANSPORT_IB_DEFAULTS \
    { \
        .hca = "", .gid_index = -1, .timeout = 20, .retries = 6, .farthest = PCI_PXB \
    }

#endif
