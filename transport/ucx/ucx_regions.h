/* SPDX-License-Identifier: Apache-2.0
 * ucx_regions: checks references to memory, both those that peers use to access this process and
 * those that this process uses to access peers.
 */
#ifndef RING_UCX_REGIONS_H
#define RING_UCX_REGIONS_H

#include "ucx.h"

/** @return the id of the region that @p ref refers to. */
uint16_t ucx_region_of(uint64_t ref);
/** @return the bytes of this process's region that @p ref refers to; 0 if peers may not access
 *  it. */
uint64_t ucx_extent_of(uint64_t ref);
/** @return the address in this process of @p bytes at @p ref; NULL if peers may not access all of
 *  them. */
void *ucx_address(uint64_t ref, uint64_t bytes);
/** @return a reference by which peers may access @p bytes at @p ptr; 0 if they may not. */
uint64_t ucx_reachable_ref(const void *ptr, size_t bytes);

/** Records that the peer's region of reference @p ref has @p extent bytes. Does nothing if either
 *  is 0. @return false if there is no memory. */
bool ucx_learn(ucx_link *l, uint64_t ref, uint64_t extent);
/** @return true if the peer has announced a region that contains @p bytes at @p ref. */
bool ucx_is_known(const ucx_link *l, uint64_t ref, size_t bytes);

#endif
