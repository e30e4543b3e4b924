/* SPDX-License-Identifier: Apache-2.0
 * A page allocator over one memfd. Free ranges are a sorted list; there are few, large
 * allocations, so first fit with merging is enough. */
#include "heap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };
/* Address space only; what is not allocated costs nothing. */
#define HEAP_SPAN ((size_t)64 << 30)
/* Committed at a time: a signal interrupts no more than this, and the rest goes on. */
#define COMMIT_STEP ((size_t)256 << 10)
/* Odd numbers of pages, so that no two mappings lie a power of two apart. */
#define STAGGER_PAGES 37
#define STAGGER_TURNS 61

typedef struct heap_range {
    size_t offset, bytes;
    bool used;
    struct heap_range *next;
} heap_range;

typedef struct peer_mapping {
    dev_t device;
    ino_t inode;
    void *base, *reserved;
    size_t reserved_bytes;
    int users;
    struct peer_mapping *next;
} peer_mapping;

static struct {
    pthread_mutex_t lock;
    pid_t owner; /* a forked child starts a heap of its own */
    int fd;
    char *base;
    heap_range *ranges;
    size_t used;
    peer_mapping *peers;
    unsigned stagger;
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

size_t heap_span(void)
{
    return HEAP_SPAN;
}

/* Maps all of the file at a staggered distance from whatever mmap would have chosen. */
static void *map_staggered(int fd, void **reserved, size_t *reserved_bytes)
{
    const size_t shift = (size_t)(1 + heap.stagger++ % STAGGER_TURNS) * STAGGER_PAGES * PAGE;
    *reserved_bytes = HEAP_SPAN + shift;
    *reserved = mmap(NULL, *reserved_bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (*reserved == MAP_FAILED)
        return NULL;
    void *base = mmap((char *)*reserved + shift, HEAP_SPAN, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) {
        munmap(*reserved, *reserved_bytes);
        return NULL;
    }
    return base;
}

static ring_status heap_create(void)
{
    const int fd = memfd_create("ring-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return fail(RING_ERR_SYSTEM, "creating shared memory (memfd_create): %m");
    void *reserved;
    size_t reserved_bytes;
    if (ftruncate(fd, (off_t)HEAP_SPAN) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        close(fd);
        return fail(RING_ERR_SYSTEM, "sizing shared memory: %m");
    }
    heap_range *all = malloc(sizeof *all);
    char *base = all != NULL ? map_staggered(fd, &reserved, &reserved_bytes) : NULL;
    if (base == NULL) {
        free(all);
        close(fd);
        return fail(RING_ERR_MEMORY, "mapping %zu GiB of address space for shared memory: %m; "
                    "raise the limit on virtual memory (ulimit -v)", HEAP_SPAN >> 30);
    }
    *all = (heap_range){.offset = 0, .bytes = HEAP_SPAN};
    heap.fd = fd;
    heap.base = base;
    heap.ranges = all;
    heap.used = 0;
    heap.peers = NULL;
    heap.owner = getpid();
    return RING_OK;
}

static ring_status heap_open_locked(void)
{
    return heap.fd >= 0 && heap.owner == getpid() ? RING_OK : heap_create();
}

ring_status heap_open(void)
{
    pthread_mutex_lock(&heap.lock);
    const ring_status status = heap_open_locked();
    pthread_mutex_unlock(&heap.lock);
    return status;
}

int heap_fd(void)
{
    return heap.fd;
}

/* Splits `range` so that its first part is exactly `bytes`. */
static bool range_split(heap_range *range, size_t bytes)
{
    if (range->bytes == bytes)
        return true;
    heap_range *rest = malloc(sizeof *rest);
    if (rest == NULL)
        return false;
    *rest = (heap_range){.offset = range->offset + bytes, .bytes = range->bytes - bytes,
                         .next = range->next};
    range->bytes = bytes;
    range->next = rest;
    return true;
}

static void range_merge_next(heap_range *range)
{
    heap_range *next = range->next;
    if (range->used || next == NULL || next->used)
        return;
    range->bytes += next->bytes;
    range->next = next->next;
    free(next);
}

static void range_discard(size_t offset, size_t bytes)
{
    fallocate(heap.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
}

static ring_status range_commit(size_t offset, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const size_t step = min_size(bytes - done, COMMIT_STEP);
        if (fallocate(heap.fd, 0, (off_t)(offset + done), (off_t)step) == 0) {
            done += step;
        } else if (errno != EINTR) {
            fail(RING_ERR_MEMORY, "committing %zu bytes of shared memory: %m", bytes);
            range_discard(offset, bytes);
            return RING_ERR_MEMORY;
        }
    }
    return RING_OK;
}

static ring_status heap_alloc_locked(void **ptr, size_t bytes)
{
    heap_range *range = heap.ranges;
    while (range != NULL && (range->used || range->bytes < bytes))
        range = range->next;
    if (range == NULL || !range_split(range, bytes))
        return fail(RING_ERR_MEMORY, "no room for %zu bytes in the %zu GiB of shared memory",
                    bytes, HEAP_SPAN >> 30);
    const ring_status status = range_commit(range->offset, bytes);
    if (status != RING_OK) {
        range_merge_next(range);
        return status;
    }
    range->used = true;
    heap.used += bytes;
    *ptr = heap.base + range->offset;
    madvise(*ptr, bytes, MADV_POPULATE_WRITE); /* only speed: page faults now, not in the call */
    return RING_OK;
}

ring_status heap_alloc(void **ptr, size_t bytes)
{
    /* One page more than asked, so that equal allocations do not lie at distances of
     * large powers of two either. */
    const size_t whole = (bytes + PAGE - 1) / PAGE * PAGE + PAGE;
    *ptr = NULL;
    if (bytes == 0)
        return RING_OK;
    if (bytes > HEAP_SPAN)
        return fail(RING_ERR_MEMORY, "%zu bytes are more than the %zu GiB of shared memory", bytes,
                    HEAP_SPAN >> 30);
    pthread_mutex_lock(&heap.lock);
    ring_status status = heap_open_locked();
    if (status == RING_OK)
        status = heap_alloc_locked(ptr, whole);
    pthread_mutex_unlock(&heap.lock);
    return status;
}

static ring_status heap_free_locked(size_t offset)
{
    heap_range *before = NULL, *range = heap.ranges;
    while (range != NULL && range->offset != offset) {
        before = range;
        range = range->next;
    }
    if (range == NULL || !range->used)
        return fail(RING_ERR_ARGUMENT, "ring_mem_free: the pointer is not one of ring_mem_alloc");
    range_discard(offset, range->bytes); /* also makes the next use zeroed */
    heap.used -= range->bytes;
    range->used = false;
    range_merge_next(range);
    if (before != NULL)
        range_merge_next(before);
    return RING_OK;
}

ring_status heap_free(void *ptr)
{
    if (ptr == NULL)
        return RING_OK;
    pthread_mutex_lock(&heap.lock);
    ring_status status = RING_ERR_ARGUMENT;
    if (heap.fd >= 0 && heap.owner == getpid())
        status = heap_free_locked((size_t)((char *)ptr - heap.base));
    else
        fail(status, "ring_mem_free: nothing was allocated in this process");
    pthread_mutex_unlock(&heap.lock);
    return status;
}

uint64_t heap_ref(const void *ptr, size_t bytes)
{
    const uintptr_t base = (uintptr_t)heap.base, at = (uintptr_t)ptr;
    if (base == 0 || at < base || at - base > HEAP_SPAN - bytes || bytes > HEAP_SPAN)
        return 0;
    return at - base + 1;
}

size_t heap_used(void)
{
    pthread_mutex_lock(&heap.lock);
    const size_t used = heap.used;
    pthread_mutex_unlock(&heap.lock);
    return used;
}

static peer_mapping *peer_find(const struct stat *file)
{
    for (peer_mapping *p = heap.peers; p != NULL; p = p->next)
        if (p->device == file->st_dev && p->inode == file->st_ino)
            return p;
    return NULL;
}

static ring_status heap_map_peer_locked(int fd, void **base)
{
    struct stat file;
    if (fstat(fd, &file) != 0 || file.st_size != (off_t)HEAP_SPAN)
        return fail(RING_ERR_PEER, "the peer's shared memory has the wrong size: another version of "
                    "libring?");
    peer_mapping *peer = peer_find(&file);
    if (peer == NULL) {
        peer = calloc(1, sizeof *peer);
        if (peer == NULL)
            return fail(RING_ERR_MEMORY, "mapping a peer's memory");
        peer->base = map_staggered(fd, &peer->reserved, &peer->reserved_bytes);
        if (peer->base == NULL) {
            free(peer);
            return fail(RING_ERR_MEMORY, "mapping %zu GiB of a peer's address space: %m; raise the "
                        "limit on virtual memory (ulimit -v)", HEAP_SPAN >> 30);
        }
        peer->device = file.st_dev;
        peer->inode = file.st_ino;
        peer->next = heap.peers;
        heap.peers = peer;
    }
    peer->users++;
    *base = peer->base;
    return RING_OK;
}

ring_status heap_map_peer(int fd, void **base)
{
    pthread_mutex_lock(&heap.lock);
    const ring_status status = heap_map_peer_locked(fd, base);
    pthread_mutex_unlock(&heap.lock);
    return status;
}

void heap_unmap_peer(void *base)
{
    pthread_mutex_lock(&heap.lock);
    for (peer_mapping **at = &heap.peers; *at != NULL; at = &(*at)->next) {
        peer_mapping *peer = *at;
        if (peer->base != base)
            continue;
        if (--peer->users == 0) {
            munmap(peer->reserved, peer->reserved_bytes);
            *at = peer->next;
            free(peer);
        }
        break;
    }
    pthread_mutex_unlock(&heap.lock);
}
