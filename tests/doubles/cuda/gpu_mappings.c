/* SPDX-License-Identifier: Apache-2.0
 * Memory that is mapped piece by piece, each piece a file; and memory of the host that is
 * registered, which comes to lie in a file in its place. */
#include "gpu.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

typedef struct physical {
    int file, device;
    size_t bytes;
    bool exportable;
} physical;

enum { MOST_RESERVED = 256 };
static struct {
    uintptr_t start;
    size_t bytes;
} reserved[MOST_RESERVED];

/* ---- Addresses ---- */

/* Behind all others: addresses of this kind are never used again. */
CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags)
{
    static size_t used;
    ENTER();
    if (bytes == 0 || bytes % LARGE != 0 || alignment > LARGE || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    int i = 0;
    while (i < MOST_RESERVED && reserved[i].bytes > 0)
        i++;
    const uintptr_t base = ((uintptr_t)gpu_is.mapped.start + LARGE - 1) / LARGE * LARGE;
    const bool fits = i < MOST_RESERVED && used + bytes + LARGE <= AREA_BYTES;
    if (fits) {
        reserved[i].start = *out = base + used;
        reserved[i].bytes = bytes;
        used += bytes;
    }
    gpu_unlock();
    return fits ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

static int reservation_of(uintptr_t at, size_t bytes)
{
    for (int i = 0; i < MOST_RESERVED; i++)
        if (at >= reserved[i].start && at - reserved[i].start + bytes <= reserved[i].bytes)
            return i;
    return -1;
}

CUresult cuMemAddressFree(CUdeviceptr memory, size_t bytes)
{
    ENTER();
    gpu_lock();
    const int i = reservation_of(memory, bytes);
    const bool whole = i >= 0 && reserved[i].start == memory && reserved[i].bytes == bytes;
    if (whole)
        reserved[i].bytes = 0;
    gpu_unlock();
    return whole ? 0 : CUDA_ERROR_INVALID_VALUE;
}

/* ---- Pieces ---- */

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    ENTER();
    *out = LARGE;
    return 0;
}

static CUresult add_physical(const physical *p, CUmemGenericAllocationHandle *out)
{
    physical *mine = malloc(sizeof *mine);
    if (mine == NULL || p->file < 0)
        misuse("no memory");
    *mine = *p;
    *out = (uintptr_t)object_add(OBJECT_PHYSICAL, mine);
    return 0;
}

static physical *physical_of(CUmemGenericAllocationHandle handle)
{
    return object_get(OBJECT_PHYSICAL, (const void *)(uintptr_t)handle);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    ENTER();
    const int device = properties->location.id;
    if (bytes == 0 || bytes % LARGE != 0 || properties->type != 1 ||
        properties->location.type != 1 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= gpu_is.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    const physical p = {.file = memfd_create("gpu", MFD_CLOEXEC),
                        .device = device,
                        .bytes = bytes,
                        .exportable = (properties->requestedHandleTypes & 1) != 0};
    if (p.file < 0 || ftruncate(p.file, (off_t)bytes) != 0)
        misuse("no memory");
    return add_physical(&p, out);
}

/* Mapped memory stays. */
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER();
    physical *p = object_take(OBJECT_PHYSICAL, (const void *)(uintptr_t)handle);
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    close(p->file);
    free(p);
    return 0;
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    ENTER();
    const physical *p = physical_of(handle);
    if (p == NULL || !p->exportable || type != 1 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *(int *)out = fcntl(p->file, F_DUPFD_CLOEXEC, 0);
    return 0;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *handle,
                                        CUmemAllocationHandleType type)
{
    struct stat is;
    physical p = {.exportable = true};
    ENTER();
    TRY(device_here(&p.device));
    p.file = fcntl((int)(intptr_t)handle, F_DUPFD_CLOEXEC, 0);
    if (type != 1 || p.file < 0 || fstat(p.file, &is) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    p.bytes = (size_t)is.st_size;
    return add_physical(&p, out);
}

CUresult cuMemMap(CUdeviceptr memory, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    ENTER();
    const physical *p = physical_of(handle);
    if (p == NULL || bytes != p->bytes || offset != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    const bool free_there = reservation_of(memory, bytes) >= 0 && allocation_find(memory) == NULL;
    if (free_there) {
        allocation *a = allocation_insert(memory, bytes);
        a->kind = MEMORY_MAPPED;
        a->device = p->device;
        a->file = fcntl(p->file, F_DUPFD_CLOEXEC, 0);
    }
    gpu_unlock();
    return free_there ? 0 : CUDA_ERROR_INVALID_VALUE;
}

/* @return whether a piece begins at @p at. */
static bool piece_at(uintptr_t at, allocation *out)
{
    *out = allocation_at(at);
    return out->uses > 0 && out->kind == MEMORY_MAPPED && out->start == at;
}

/* Of each piece in the range. */
CUresult cuMemSetAccess(CUdeviceptr memory, size_t bytes, const CUmemAccessDesc *accesses,
                        size_t count)
{
    ENTER();
    allocation a;
    for (uintptr_t at = memory; at < memory + bytes; at += a.bytes) {
        if (!piece_at(at, &a) || count == 0)
            return CUDA_ERROR_INVALID_VALUE;
        const int protection = accesses[0].flags == 3   ? PROT_READ | PROT_WRITE
                               : accesses[0].flags == 1 ? PROT_READ
                                                        : PROT_NONE;
        if (!gpu_map(&(map_request){.at = (void *)at,
                                    .bytes = a.bytes,
                                    .pid = getpid(),
                                    .file = a.file,
                                    .protection = protection,
                                    .device = a.device}))
            return CUDA_ERROR_MAP_FAILED;
    }
    return 0;
}

CUresult cuMemUnmap(CUdeviceptr memory, size_t bytes)
{
    int device;
    ENTER();
    TRY(device_here(&device));
    TRY(gpu_drain(device));
    allocation a;
    for (uintptr_t at = memory; at < memory + bytes; at += a.bytes) {
        if (!piece_at(at, &a))
            return CUDA_ERROR_INVALID_VALUE;
        TRY(allocation_unmap(&a));
    }
    return 0;
}

/* ---- Registered memory ---- */

typedef struct mapping {
    uintptr_t start, end;
    char shared;
    uint64_t offset, device, inode;
} mapping;

static bool mapping_at(uintptr_t at, mapping *out)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end, offset, inode;
        unsigned major, minor;
        if (sscanf(line, "%lx-%lx %*3c%c %lx %x:%x %lu", &start, &end, &out->shared, &offset,
                   &major, &minor, &inode) != 7)
            continue;
        found = at >= start && at < end;
        *out = (mapping){start, end, out->shared, offset, makedev(major, minor), inode};
    }
    if (maps != NULL)
        fclose(maps);
    return found;
}

/* A descriptor of what is mapped there and shared already; -1: there is none. */
static int file_of(const mapping *m)
{
    char path[80];
    snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", m->start, m->end);
    int file = open(path, O_RDWR | O_CLOEXEC);
    DIR *open_files = file < 0 ? opendir("/proc/self/fd") : NULL;
    for (const struct dirent *e; open_files != NULL && file < 0;) {
        struct stat is;
        if ((e = readdir(open_files)) == NULL)
            break;
        const int other = atoi(e->d_name);
        if (fstat(other, &is) == 0 && is.st_dev == m->device && is.st_ino == m->inode)
            file = fcntl(other, F_DUPFD_CLOEXEC, 0);
    }
    if (open_files != NULL)
        closedir(open_files);
    return file;
}

/* Other threads must not write to these pages meanwhile. They hold more than is registered, so that
 * sanitizers must not look at what is copied. @return -1: it cannot be read. */
static int move_to_file(uintptr_t first, size_t bytes)
{
    const int file = memfd_create("pinned", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
        misuse("no memory");
    if (syscall(SYS_pwrite64, file, first, bytes, 0) == (long)bytes &&
        mmap((void *)first, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) !=
            MAP_FAILED)
        return file;
    close(file);
    return -1;
}

/* @return whether something else is registered that has a byte in these pages. */
static bool pages_are_used(uintptr_t first, size_t bytes, const allocation *but)
{
    bool used = false;
    gpu_lock();
    for (int i = 0; i < gpu->allocation_count; i++) {
        const allocation *a = &gpu->allocations[i];
        used |= a->id != but->id && a->start < first + bytes && a->start + a->bytes > first;
    }
    gpu_unlock();
    return used;
}

CUresult cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
    const uintptr_t at = (uintptr_t)memory, first = page_of(at);
    const size_t whole = page_bytes(at, bytes);
    int device;
    mapping m;
    ENTER();
    TRY(device_here(&device));
    TRY(capture_forbids());
    if (bytes == 0 || !mapping_at(at, &m))
        return CUDA_ERROR_INVALID_VALUE;
    if (allocation_at(at).uses > 0 || allocation_at(at + bytes - 1).uses > 0)
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    const bool shared = m.shared == 's';
    if (shared && first + whole > m.end)
        misuse("shared memory that is mapped in several pieces cannot be registered");
    const uint64_t offset = shared ? m.offset + (first - m.start) : 0;
    const int file = shared ? file_of(&m) : move_to_file(first, whole);
    if (file < 0 || !gpu_map(&(map_request){.at = (void *)first,
                                            .bytes = whole,
                                            .pid = getpid(),
                                            .file = file,
                                            .offset = offset,
                                            .protection = PROT_READ | PROT_WRITE,
                                            .device = -1}))
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    allocation *a = allocation_insert(at, bytes);
    a->kind = MEMORY_REGISTERED;
    a->device = device;
    a->flags = flags;
    a->file = file;
    a->pooled = shared;
    gpu_unlock();
    return 0;
}

/* Memory that was private is so again, or what a child of the process writes would show here; but
 * for pages in which something else is registered. */
CUresult cuMemHostUnregister(void *memory)
{
    const uintptr_t first = page_of((uintptr_t)memory);
    int device;
    ENTER();
    TRY(device_here(&device));
    const allocation a = allocation_at((uintptr_t)memory);
    if (a.uses == 0 || a.kind != MEMORY_REGISTERED || a.start != (uintptr_t)memory)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    TRY(gpu_drain(device));
    const size_t whole = page_bytes(a.start, a.bytes);
    if (pages_are_used(first, whole, &a)) {
        close(a.file);
        gpu_lock();
        allocation_remove(allocation_find(a.start));
        gpu_unlock();
        return 0;
    }
    if (!a.pooled && (mmap((void *)first, whole, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ||
                      syscall(SYS_pread64, a.file, first, whole, 0) != (long)whole))
        misuse("memory cannot be given back");
    return allocation_unmap(&a);
}
