/* SPDX-License-Identifier: Apache-2.0
 * ucx_regions: references: those that peers may follow here, and those that may be followed there.
 */
#ifndef RING_UCX_REGIONS_H
#define RING_UCX_REGIONS_H

#include "ucx.h"

uint16_t ucx_region_of(uint64_t ref);
/** The bytes of the region that it refers to; 0: not to be reached. */
uint64_t ucx_extent_of(uint64_t ref);
/** @return the address, NULL: not within what peers may reach here. */
void *ucx_address(uint64_t ref, uint64_t bytes);
/** @return 0: peers may not reach it. */
uint64_t ucx_reachable_ref(const void *ptr, size_t bytes);

/** Keeps how big a region of the peer's is. @return false: no memory. */
bool ucx_learn(ucx_link *l, uint64_t ref, uint64_t extent);
bool ucx_is_known(const ucx_link *l, uint64_t ref, size_t bytes);

#endif
