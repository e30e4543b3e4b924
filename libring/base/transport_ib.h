/* SPDX-License-Identifier: Apache-2.0
 *
 * transport_ib: holds the user's options for InfiniBand and RoCE. The settings fill the struct from
 * environment variables, and the transports read it. It is in base because the settings and the
 * transports may not include each other's headers.
 */
#ifndef RING_TRANSPORT_IB_H
#define RING_TRANSPORT_IB_H

#include "pci_distance.h"

#include <stdbool.h>

typedef struct transport_ib {
    bool disabled;         /* RING_IB_DISABLE                                                 */
    char hca[128];         /* RING_IB_HCA: devices and ports as in NCCL_IB_HCA; "": all       */
    int gid_index;         /* RING_IB_GID_INDEX; -1: chosen by the transport                  */
    const char *gid_from;  /* another library's variable that has set gid_index; a port without
                              that entry then ignores gid_index. NULL: RING_IB_GID_INDEX has
                              set it, and a port without that entry is an error               */
    int pkey_index;        /* RING_IB_PKEY: entry of the port's P_Key table                   */
    int service_level;     /* RING_IB_SL: for InfiniBand                                      */
    int traffic_class;     /* RING_IB_TC: for RoCE, DSCP and ECN                              */
    int timeout;           /* RING_IB_TIMEOUT: a packet is resent after 4.096 us * 2^timeout  */
    int retries;           /* RING_IB_RETRY_CNT: resends before a queue pair fails            */
    bool relaxed;          /* RING_IB_PCI_RELAXED_ORDERING: payload may be written in any order */
    pci_distance farthest; /* RING_NET_GDR_LEVEL: the largest distance from an accelerator to an
                              adapter that may access its memory */
} transport_ib;

#define TRANSPORT_IB_DEFAULTS \
    { \
        .hca = "", .gid_index = -1, .timeout = 20, .retries = 6, .farthest = PCI_PXB \
    }

#endif
