/* SPDX-License-Identifier: Apache-2.0
 *
 * region: creates and maps the memory of one ring of lines between two processes. It is a memfd,
 * which has no name in any file system: nothing remains when its users are killed, and only a
 * process that has the descriptor can map it. It is sealed, so that neither side can shrink it
 * while the other uses it.
 *
 * A region has an odd number of pages, so that neighbours are not a power of two apart.
 */
#ifndef RING_SHM_REGION_H
#define RING_SHM_REGION_H

#include "lines.h"

/** Creates and maps a zeroed region. @param[out] fd  the caller passes it on and closes it.
 *  @param[out] lines  number of lines in the file, LINES or LINES_OF_MANY; the rest of the mapping
 *                     must not be touched. */
ring_status shm_region_create(int *fd, lines_ring **ring, uint32_t *lines);

/** Checks that @p fd is a region, which a peer has created, and maps it. */
ring_status shm_region_map(int fd, lines_ring **ring, uint32_t *lines);

/** NULL is allowed. */
void shm_region_unmap(lines_ring *ring);

/** @return RING_OK if the file cannot shrink while it is mapped here. */
ring_status shm_region_check_seals(int fd);

#endif
