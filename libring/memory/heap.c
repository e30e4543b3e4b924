/* SPDX-License-Identifier: Apache-2.0
 * Allocates ranges of pages of one memfd. The used and free ranges are a list sorted by offset. A
 * new allocation takes the first free range that is large enough; adjacent free ranges are merged.
 * That suffices, since allocations are few and large. */
#include "heap.h"

#include "headroom.h"
#include "span.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Bytes committed by one system call. They are few, since a signal makes the call start again. */
#define COMMIT_STEP ((size_t)256 << 10)
/* Bytes committed between two checks of the headroom, which other processes may use meanwhile. */
#define CHECK_STEP ((size_t)64 << 20)
/* Bytes committed without a check, so that many small allocations need only one. */
#define UNCHECKED_MOST ((size_t)1 << 20)
/* The headroom that must remain after a commit: one byte per OWN_SHARE committed bytes, for the
 * kernel's page tables, and LEFT_OVER bytes for other processes. */
#define OWN_SHARE 128
#define LEFT_OVER (4 * UNCHECKED_MOST)

typedef struct heap_range {
    size_t offset, bytes;
    bool used;
    struct heap_range *next;
} heap_range;

/* A mapped heap of a peer, which its file identifies. */
typedef struct peer_mapping {
    dev_t device;
    ino_t inode;
    span span;
    int users; /* calls of heap_map_peer() that were not undone */
    struct peer_mapping *next;
} peer_mapping;

typedef struct heap_state {
    pthread_mutex_t lock;
    _Atomic bool open; /* fd and span are set, and do not change any more; read without the lock */
    int fd;
    span span;
    const char *bound; /* names the limit that determines the span's size */
    heap_range *ranges;
    size_t unchecked; /* bytes committed since the last check of the headroom */
    peer_mapping *peers;
} heap_state;

#define HEAP_NONE \
    { \
        .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 \
    }

static heap_state heap = HEAP_NONE;
static void (*_Atomic watcher)(size_t offset, size_t bytes); /* called before memory is freed */

/* ---- Creating ------------------------------------------------------------------- */

static ring_status size_and_map(int fd)
{
    const size_t bytes = span_sensible(&heap.bound);
    if (bytes < SPAN_LEAST)
        return fail(RING_ERR_MEMORY,
                    "cannot create shared memory: it needs %zu MiB of address space, and only %zu "
                    "KiB are available (%s)",
                    SPAN_LEAST >> 20, bytes >> 10, heap.bound);
    RING_TRY(fd_size_and_seal(fd, bytes));
    if (!span_map(fd, bytes, &heap.span))
        return fail(RING_ERR_MEMORY,
                    "mapping %zu MiB of address space for shared memory: %m; raise the limit on "
                    "virtual memory (ulimit -v)",
                    bytes >> 20);
    return RING_OK;
}

static ring_status heap_create(void)
{
    int fd = fd_guard(memfd_create("ring-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd < 0)
        return fail(RING_ERR_SYSTEM, "creating shared memory (memfd_create): %m");
    heap_range *all = malloc(sizeof *all);
    const ring_status status = all != NULL ? size_and_map(fd)
                                           : fail(RING_ERR_MEMORY, "no memory to create the heap");
    if (status != RING_OK) {
        free(all);
        fd_close(&fd);
        return status;
    }
    *all = (heap_range){.offset = 0, .bytes = heap.span.bytes};
    heap.fd = fd;
    heap.ranges = all;
    atomic_store_explicit(&heap.open, true, memory_order_release);
    return RING_OK;
}

static bool is_open(void)
{
    return atomic_load_explicit(&heap.open, memory_order_acquire);
}

static ring_status heap_open_locked(void)
{
    return is_open() ? RING_OK : heap_create();
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
    return is_open() ? heap.fd : -1;
}

size_t heap_span(void)
{
    return is_open() ? heap.span.bytes : 0;
}

void *heap_base(void)
{
    return is_open() ? heap.span.base : NULL;
}

/* ---- Forks ---------------------------------------------------------------------- */

/* In a forked child: the parent's list of ranges. The pointer keeps leak checkers from reporting
 * it. */
static heap_range *volatile of_parent;

/* A child does not inherit the mappings. Their addresses are reserved, so that the parent's
 * pointers do not become valid for other memory. The child does not free the parent's list of
 * ranges, because another thread may have been changing the list during the fork. */
static void in_child(void)
{
    if (is_open()) {
        span_bar(&heap.span);
        of_parent = heap.ranges;
    }
    heap = (heap_state)HEAP_NONE;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

/* ---- Ranges --------------------------------------------------------------------- */

/* Splits a free range after @p bytes. @return false if there is no memory for the second part. */
static bool range_split(heap_range *range, size_t bytes)
{
    if (range->bytes == bytes)
        return true;
    heap_range *rest = malloc(sizeof *rest);
    if (rest == NULL)
        return false;
    *rest = (heap_range){.offset = range->offset + bytes,
                         .bytes = range->bytes - bytes,
                         .next = range->next};
    range->bytes = bytes;
    range->next = rest;
    return true;
}

/* Merges a range with the next one if both are free. */
static void range_merge_next(heap_range *range)
{
    heap_range *next = range->next;
    if (range->used || next == NULL || next->used)
        return;
    range->bytes += next->bytes;
    range->next = next->next;
    free(next);
}

/* Gives the pages of a range back to the kernel. */
static void range_discard(size_t offset, size_t bytes)
{
    fallocate(heap.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
}

/* Fails if @p bytes more cannot be committed. Up to UNCHECKED_MOST bytes are not checked. */
static ring_status check_headroom(size_t bytes)
{
    headroom h;
    if (heap.unchecked + bytes <= UNCHECKED_MOST)
        return RING_OK;
    headroom_read("", &h);
    if (bytes + bytes / OWN_SHARE + LEFT_OVER <= h.bytes) {
        heap.unchecked = 0;
        return RING_OK;
    }
    return fail(RING_ERR_MEMORY,
                "%zu KiB of shared memory do not fit into the %zu KiB that are left of %s; use "
                "smaller buffers or raise the limit",
                bytes >> 10, h.bytes >> 10, h.bound);
}

/* Commits at most CHECK_STEP bytes. */
static ring_status commit_part(size_t offset, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const size_t step = min_size(bytes - done, COMMIT_STEP);
        const int result = fallocate(heap.fd, 0, (off_t)(offset + done), (off_t)step);
        if (result != 0 && errno != EINTR)
            return fail(RING_ERR_MEMORY, "committing %zu bytes of shared memory: %m", bytes);
        done += result == 0 ? step : 0;
    }
    heap.unchecked += bytes;
    return RING_OK;
}

/* Commits all pages of a range, or none if it fails. */
static ring_status range_commit(const heap_range *range)
{
    ring_status status = RING_OK;
    for (size_t done = 0; done < range->bytes && status == RING_OK; done += CHECK_STEP) {
        const size_t left = range->bytes - done;
        status = check_headroom(left);
        if (status == RING_OK)
            status = commit_part(range->offset + done, min_size(left, CHECK_STEP));
    }
    if (status != RING_OK)
        range_discard(range->offset, range->bytes);
    return status;
}

/* ---- Allocation ----------------------------------------------------------------- */

static ring_status heap_alloc_locked(void **ptr, size_t bytes)
{
    const size_t page = span_page();
    /* One page more than needed. Otherwise allocations of equal size could be at distances that are
     * large powers of two, and such buffers compete for the same lines of the CPU's caches. */
    const size_t whole = bytes < heap.span.bytes ? (bytes + page - 1) / page * page + page : 0;
    heap_range *range = whole > 0 ? heap.ranges : NULL;
    while (range != NULL && (range->used || range->bytes < whole))
        range = range->next;
    if (range == NULL || !range_split(range, whole))
        return fail(RING_ERR_MEMORY,
                    "no room for %zu bytes in the %zu MiB of address space for shared memory (%s)",
                    bytes, heap.span.bytes >> 20, heap.bound);
    const ring_status status = range_commit(range);
    if (status != RING_OK) {
        range_merge_next(range);
        return status;
    }
    range->used = true;
    *ptr = heap.span.base + range->offset;
    madvise(*ptr, range->bytes, MADV_DODUMP);
    madvise(*ptr, range->bytes, MADV_POPULATE_WRITE); /* so that calls take no page faults */
    return RING_OK;
}

ring_status heap_alloc(void **ptr, size_t bytes)
{
    *ptr = NULL;
    if (bytes == 0)
        return RING_OK;
    pthread_mutex_lock(&heap.lock);
    ring_status status = heap_open_locked();
    if (status == RING_OK)
        status = heap_alloc_locked(ptr, bytes);
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
        return fail(RING_ERR_ARGUMENT,
                    "ring_mem_free: the pointer was not returned by ring_mem_alloc");
    range_discard(offset, range->bytes); /* so that the next allocation of these pages is zeroed */
    madvise(heap.span.base + offset, range->bytes, MADV_DONTDUMP);
    range->used = false;
    range_merge_next(range);
    if (before != NULL)
        range_merge_next(before);
    return RING_OK;
}

ring_status heap_free(void *ptr)
{
    void (*freeing)(size_t, size_t) = atomic_load(&watcher);
    void *base;
    size_t bytes;
    if (ptr == NULL)
        return RING_OK;
    if (freeing != NULL && heap_allocation(ptr, 1, &base, &bytes) && base == ptr)
        freeing((size_t)((const char *)ptr - heap.span.base), bytes);
    pthread_mutex_lock(&heap.lock);
    ring_status status = RING_ERR_ARGUMENT;
    if (is_open())
        status = heap_free_locked((size_t)((char *)ptr - heap.span.base));
    else
        fail(status, "ring_mem_free: this process has not called ring_mem_alloc");
    pthread_mutex_unlock(&heap.lock);
    return status;
}

uint64_t heap_ref(const void *ptr, size_t bytes)
{
    if (!is_open())
        return 0;
    const uintptr_t base = (uintptr_t)heap.span.base, at = (uintptr_t)ptr;
    const size_t all = heap.span.bytes;
    return at < base || bytes > all || at - base > all - bytes ? 0 : at - base + 1;
}

bool heap_allocation(const void *ptr, size_t bytes, void **base, size_t *size)
{
    const uint64_t ref = heap_ref(ptr, bytes);
    if (ref == 0)
        return false;
    const size_t offset = (size_t)ref - 1;
    pthread_mutex_lock(&heap.lock);
    const heap_range *range = heap.ranges;
    while (range != NULL && offset - range->offset >= range->bytes)
        range = range->next;
    const bool inside = range != NULL && range->used &&
                        bytes <= range->bytes - (offset - range->offset);
    if (inside) {
        *base = heap.span.base + range->offset;
        *size = range->bytes;
    }
    pthread_mutex_unlock(&heap.lock);
    return inside;
}

void heap_watch(void (*freeing)(size_t offset, size_t bytes))
{
    atomic_store(&watcher, freeing);
}

/* ---- Peers ---------------------------------------------------------------------- */

static ring_status peer_add(int fd, const struct stat *file, peer_mapping **out)
{
    peer_mapping *peer = calloc(1, sizeof *peer);
    if (peer == NULL)
        return fail(RING_ERR_MEMORY, "no memory to map a peer's heap");
    if (!span_map(fd, (size_t)file->st_size, &peer->span)) {
        free(peer);
        return fail(RING_ERR_MEMORY,
                    "mapping %lld MiB of a peer's address space: %m; raise the limit on virtual "
                    "memory (ulimit -v)",
                    (long long)file->st_size >> 20);
    }
    peer->device = file->st_dev;
    peer->inode = file->st_ino;
    peer->next = heap.peers;
    heap.peers = *out = peer;
    return RING_OK;
}

static ring_status heap_map_peer_locked(int fd, size_t bytes, void **base)
{
    struct stat file;
    if (bytes == 0 || bytes > SPAN_MOST || fstat(fd, &file) != 0 || file.st_size != (off_t)bytes)
        return fail(RING_ERR_PEER,
                    "the peer's shared memory has the wrong size; check that both ranks run the "
                    "same version of libring");
    peer_mapping *peer = heap.peers;
    while (peer != NULL && (peer->device != file.st_dev || peer->inode != file.st_ino))
        peer = peer->next;
    if (peer == NULL)
        RING_TRY(peer_add(fd, &file, &peer));
    peer->users++;
    *base = peer->span.base;
    return RING_OK;
}

ring_status heap_map_peer(int fd, size_t bytes, void **base)
{
    pthread_mutex_lock(&heap.lock);
    const ring_status status = heap_map_peer_locked(fd, bytes, base);
    pthread_mutex_unlock(&heap.lock);
    return status;
}

void heap_unmap_peer(void *base)
{
    pthread_mutex_lock(&heap.lock);
    for (peer_mapping **at = &heap.peers; *at != NULL; at = &(*at)->next) {
        peer_mapping *peer = *at;
        if (peer->span.base != base)
            continue;
        if (--peer->users == 0) {
            span_unmap(&peer->span);
            *at = peer->next;
            free(peer);
        }
        break;
    }
    pthread_mutex_unlock(&heap.lock);
}
