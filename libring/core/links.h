/* SPDX-License-Identifier: Apache-2.0
 * links: which transport joins which pair. */
#ifndef RING_CORE_LINKS_H
#define RING_CORE_LINKS_H

#include "control.h"
#include "transport.h"

/** The facts of all links that cards tell. */
typedef struct link_facts {
    char names[32];  /* of this rank's transports */
    bool maps_all;   /* the links of all pairs map memory */
    bool maps_hosts; /* those of all pairs that share a host do */
    bool over_rails; /* hosts are joined by links that may go over several ports */
    bool reaches;    /* some of this rank's links reach memory without mapping it */
    bool registers;  /* and calls make automatic regions for them */
} link_facts;

ring_status links_mask(const settings *s, uint32_t *mask);
/** @return the ports that links between hosts use here, 1 where they have none to choose. */
int links_rails(const settings *s, uint32_t mask);
/** @return whether a transport of @p mask goes by RDMA adapters. */
bool links_use_adapters(uint32_t mask);
/** @return the InfiniBand settings for transports. */
transport_ib links_ib(const settings *s);
/** @return the transport that joins two ranks, NULL: none. @param[out] number  its number. */
const transport *links_strongest(const ring_comm *comm, int a, int b, uint16_t *number);
/** Finds whether the links of all pairs, or of all that share a host, map memory. From the cards
 *  alone, so all ranks get the same result. */
ring_status links_map(ring_comm *comm);
/** RING_ERR_CONFIG if no transport joins this rank and another one; else notes which ones do. */
ring_status links_check(ring_comm *comm);

#endif
