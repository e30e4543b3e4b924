/* SPDX-License-Identifier: Apache-2.0
 *
 * region: creates and maps the memory of one ring of lines between two processes. A region is a
 * memfd, which has no name in any file system: nothing remains when its users are killed, and only
 * a process that has the descriptor can map it. It is sealed, so that neither process can shrink it
 * while the other uses it.
 *
 * A region has an odd number of pages, so that the same lines of neighbouring regions do not
 * compete for the same cache sets.
 */
#ifndef RING_SHM_REGION_H
#define RING_SHM_REGION_H

#include "lines.h"

/** Creates and maps a zeroed region.
 *  @param[out] fd     the memfd, which the caller passes to the peer and closes.
 *  @param[out] lines  number of lines in the file, LINES or LINES_OF_MANY; the caller must not
 *                     access the rest of the mapping. */
ring_status shm_region_create(int *fd, lines_ring **ring, uint32_t *lines);

/** Checks that @p fd is a region that a peer has created, and maps it.
 *  @param[out] lines  as for shm_region_create(). */
ring_status shm_region_map(int fd, lines_ring **ring, uint32_t *lines);

/** Unmaps a region. NULL is allowed. */
void shm_region_unmap(lines_ring *ring);

/** @return RING_OK if @p fd is sealed against shrinking; otherwise RING_ERR_PEER. */
ring_status shm_region_check_seals(int fd);

#endif
