/* SPDX-License-Identifier: Apache-2.0
 * Creates rooms, and opens those of other processes by their descriptors in /proc. */
#include "cuda_rooms.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

ring_status cuda_room_new(size_t bytes, int *file)
{
    const int fd = memfd_create("ring-gpu", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        const int cause = errno;
        if (fd >= 0)
            close(fd);
        return fail(RING_ERR_SYSTEM, "creating shared memory of %zu bytes for GPUs: %s", bytes,
                    strerror(cause));
    }
    *file = fd;
    return RING_OK;
}

ring_status cuda_room_describe(int file, accelerator_room *out)
{
    struct stat about;
    if (fstat(file, &about) != 0)
        return fail(RING_ERR_SYSTEM, "finding shared memory for GPUs: %s", strerror(errno));
    *out = (accelerator_room){.process = (int32_t)getpid(),
                              .file = file,
                              .inode = (uint64_t)about.st_ino,
                              .bytes = (uint64_t)about.st_size};
    return RING_OK;
}

/* @return a descriptor of the room; -1: `errno` tells why there is none. A process in another
 * namespace may have the same number, so the file is compared. */
static int find_file(const accelerator_room *room)
{
    struct stat about;
    char path[64];
    (void)text_format(path, sizeof path, "/proc/%d/fd/%d", (int)room->process, (int)room->file);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, &about) == 0 && (uint64_t)about.st_ino == room->inode &&
        (uint64_t)about.st_size == room->bytes && seals >= 0 && (seals & F_SEAL_SHRINK) != 0)
        return fd;
    close(fd);
    errno = ESTALE;
    return -1;
}

ring_status cuda_room_open(const accelerator_room *room, cuda_room *out)
{
    const cuda_driver *api = cuda_driver_load();
    const int fd = find_file(room);
    if (fd < 0)
        return fail(RING_ERR_UNSUPPORTED, "cannot open the shared memory of process %d: %s",
                    (int)room->process, strerror(errno));
    void *at = mmap(NULL, room->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int cause = errno;
    close(fd);
    if (at == MAP_FAILED)
        return fail(RING_ERR_MEMORY, "mapping the shared memory of process %d: %s",
                    (int)room->process, strerror(cause));
    CUdeviceptr there = 0;
    CUresult result = api->host_register(at, room->bytes,
                                         CU_MEMHOSTREGISTER_PORTABLE |
                                             CU_MEMHOSTREGISTER_DEVICEMAP);
    if (result != CUDA_SUCCESS) {
        munmap(at, room->bytes);
        return cuda_check(result, "pinning shared memory (cuMemHostRegister)");
    }
    *out = (cuda_room){.at = at, .bytes = room->bytes};
    result = api->host_device_pointer(&there, at, 0);
    out->there = there;
    if (result != CUDA_SUCCESS)
        cuda_room_close(out);
    return cuda_check(result, "finding pinned memory (cuMemHostGetDevicePointer)");
}

void cuda_room_close(cuda_room *r)
{
    if (r->at == NULL)
        return;
    if (cuda_driver_load()->host_unregister(r->at) == CUDA_SUCCESS) /* else the GPU may use it */
        munmap(r->at, r->bytes);
    r->at = NULL;
}
