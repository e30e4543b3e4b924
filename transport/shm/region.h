/* SPDX-License-Identifier: Apache-2.0
 *
 * region: the memory of one ring of lines between two processes. A memfd: without a name in any
 * file system, so nothing remains when its users are killed, and only a process with its descriptor
 * can map it. Sealed, so that no side can shrink it under the other.
 *
 * A region is an odd number of pages, so that neighbours do not lie a power of two apart.
 */
#ifndef RING_SHM_REGION_H
#define RING_SHM_REGION_H

#include "lines.h"

/** Makes and maps one, zeroed. @param[out] fd  to be passed on and closed by the caller.
 *  @param[out] lines  that it has, LINES or LINES_OF_MANY: others of the mapping must not be
 *                     touched. */
ring_status shm_region_create(int *fd, lines_ring **ring, uint32_t *lines);

/** Maps the one behind @p fd, which a peer made, after checking that it is one. */
ring_status shm_region_map(int fd, lines_ring **ring, uint32_t *lines);

/** NULL is allowed. */
void shm_region_unmap(lines_ring *ring);

/** @return RING_OK if the file cannot shrink while it is mapped here. */
ring_status shm_region_check_seals(int fd);

#endif
