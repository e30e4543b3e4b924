/* SPDX-License-Identifier: Apache-2.0
 * Creates and maps the memory files that hold rings of lines. */
#include "region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { PAGE = 4096, REGION = (sizeof(lines_ring) + PAGE - 1) / PAGE * PAGE };
/* If a limit on file sizes (ulimit -f) forbids REGION bytes, the file has only SMALL_REGION. The
 * same address range is mapped. */
enum { SMALL_REGION = (lines_bytes(LINES_OF_MANY) + PAGE - 1) / PAGE * PAGE };

_Static_assert(REGION / PAGE % 2 == 1 && SMALL_REGION / PAGE % 2 == 1,
               "regions have an odd number of pages");

static ring_status region_map(int fd, lines_ring **ring)
{
    void *at = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return fail(RING_ERR_MEMORY, "mapping %d bytes of shared memory: %m", (int)REGION);
    *ring = at;
    return RING_OK;
}

ring_status shm_region_create(int *fd, lines_ring **ring, uint32_t *lines)
{
    *fd = memfd_create("ring-lines", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0)
        return fail(RING_ERR_SYSTEM, "creating shared memory (memfd_create): %m; see ulimit -n");
    ring_status status = fd_size_and_seal(*fd, REGION);
    *lines = status == RING_OK ? LINES : LINES_OF_MANY;
    if (status == RING_ERR_MEMORY)
        status = fd_size_and_seal(*fd, SMALL_REGION);
    if (status == RING_OK)
        status = region_map(*fd, ring);
    if (status != RING_OK)
        fd_close(fd);
    return status;
}

ring_status shm_region_check_seals(int fd)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return fail(RING_ERR_PEER, "rejecting the peer's shared memory: it is not sealed against "
                                   "shrinking");
    return RING_OK;
}

ring_status shm_region_map(int fd, lines_ring **ring, uint32_t *lines)
{
    RING_TRY(shm_region_check_seals(fd));
    struct stat file;
    const off_t size = fstat(fd, &file) == 0 ? file.st_size : 0;
    *lines = size == REGION ? LINES : size == SMALL_REGION ? LINES_OF_MANY : 0;
    if (*lines == 0)
        return fail(RING_ERR_PEER,
                    "the peer's ring has %lld byte%s instead of %d or %d; run the same version of "
                    "libring on all ranks",
                    (long long)size, plural((unsigned long long)size), (int)REGION,
                    (int)SMALL_REGION);
    return region_map(fd, ring);
}

void shm_region_unmap(lines_ring *ring)
{
    if (ring != NULL)
        munmap(ring, REGION);
}
