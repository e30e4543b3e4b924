/* SPDX-License-Identifier: Apache-2.0
 * links: decides which transport joins each pair of ranks, and summarizes these links for the
 * choice of algorithms. */
#ifndef RING_CORE_LINKS_H
#define RING_CORE_LINKS_H

#include "control.h"
#include "transport.h"

/** Facts about the links of a communicator, derived from the cards. */
typedef struct link_facts {
    char names[32];  /* names of this rank's transports */
    bool maps_all;   /* the links of all pairs map memory */
    bool maps_hosts; /* the links of all pairs that share a host map memory */
    bool over_rails; /* the links between hosts may use several ports */
    bool reaches;    /* one of this rank's links accesses remote memory without mapping it */
    bool registers;  /* calls register their buffers automatically, because a link needs that */
} link_facts;

/** Finds the transports that RING_TRANSPORT allows and that work here. @param[out] mask  bit i is
 *  transport i. @return RING_ERR_CONFIG if there are none. */
ring_status links_mask(const settings *s, uint32_t *mask);
/** @return the number of ports of this host over which links to other hosts may be spread, at least
 *  1. */
int links_rails(const settings *s, uint32_t mask);
/** @return true if a transport of @p mask uses RDMA adapters. */
bool links_use_adapters(uint32_t mask);
/** @return the strongest transport that can join ranks @p a and @p b; NULL: none.
 *  @param[out] number  its number in transport_all(). */
const transport *links_strongest(const ring_comm *comm, int a, int b, uint16_t *number);
/** Sets maps_all, maps_hosts and over_rails of the communicator's links. Uses only the cards, so
 *  all ranks get the same result. */
ring_status links_map(ring_comm *comm);
/** Checks that a transport joins this rank with each other rank, and records the names and facts of
 *  these transports. @return RING_ERR_CONFIG if a pair has none. */
ring_status links_check(ring_comm *comm);

#endif
