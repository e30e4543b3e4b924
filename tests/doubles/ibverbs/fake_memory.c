/* SPDX-License-Identifier: Apache-2.0
 * Protection domains and registered memory. A key has a serial number, which comes again only after
 * 16 million others, and a random byte, which differs between a region's lkey and rkey. */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

enum { PAGE = 4096, SERIAL_BITS = 24 };

typedef struct fake_region {
    struct ibv_mr base;
    char *memory; /* the contents of iova */
    uint64_t iova;
    unsigned access;
    char *pinned; /* a copy of pages that their process has lost */
    void *mapped; /* of a dma-buf */
    size_t mapped_bytes;
} fake_region;

static fake_region *regions[MOST_SLOTS]; /* by serial number */
static uint32_t serials;
static fake_ibverbs_dmabuf dmabuf;
static struct {
    char *seen, *real;
    size_t bytes;
} peer_memory;

/* ---- Domains ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    static uint32_t handles;
    fake_domain *d = fake_failure("alloc_pd") == 0 ? calloc(1, sizeof *d) : NULL;
    if (d == NULL)
        return NULL;
    d->base.context = context;
    fake_lock();
    d->base.handle = ++handles;
    fake_context_of(context)->users++;
    fake_counts.domains++;
    fake_unlock();
    return &d->base;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    fake_domain *d = (fake_domain *)(void *)pd;
    fake_lock();
    const bool busy = d->users > 0;
    if (!busy) {
        fake_context_of(pd->context)->users--;
        fake_counts.domains--;
    }
    fake_unlock();
    if (busy)
        return EBUSY;
    free(d);
    return 0;
}

/* ---- Regions ---- */

static fake_region *region_of(uint32_t key, bool remote)
{
    fake_region *r = regions[(key >> 8) % MOST_SLOTS];
    return r != NULL && key == (remote ? r->base.rkey : r->base.lkey) ? r : NULL;
}

static bool take_keys(fake_region *r)
{
    for (int i = 0; i < MOST_SLOTS; i++) {
        serials = (serials + 1) % (1u << SERIAL_BITS);
        if (serials == 0 || regions[serials % MOST_SLOTS] != NULL)
            continue;
        const uint32_t random = (uint32_t)fake_roll() & 0xff;
        r->base.handle = serials;
        r->base.lkey = serials << 8 | random;
        r->base.rkey = serials << 8 | (random ^ 0x80);
        regions[serials % MOST_SLOTS] = r;
        return true;
    }
    return false;
}

static void count_region(const fake_region *r, bool more)
{
    const uint64_t sign = more ? 1 : UINT64_MAX; /* -1 */
    ((fake_domain *)(void *)r->base.pd)->users += more ? 1 : -1;
    fake_counts.registrations += sign;
    fake_counts.registered_bytes += sign * r->base.length;
    fake_counts.registrations_made += more;
}

static int add_region(fake_region *r)
{
    const uint64_t limit = fake_settings_get()->memlock;
    int error = 0;
    fake_lock();
    if (r->base.length > limit || fake_counts.registered_bytes > limit - r->base.length)
        error = ENOMEM;
    else if (!take_keys(r))
        error = ENOMEM;
    else
        count_region(r, true);
    fake_unlock();
    return error;
}

static bool allowed(uint64_t memory, size_t length, uint64_t iova, unsigned access)
{
    const unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_OPTIONAL_RANGE;
    if (length == 0 || (access & ~known) != 0 || memory % PAGE != iova % PAGE)
        return false;
    return (access & IBV_ACCESS_REMOTE_WRITE) == 0 || (access & IBV_ACCESS_LOCAL_WRITE) != 0;
}

/* As if its pages were pinned. A kernel that cannot do it says the same as of memory that may not
 * be accessed, so it is asked about some that may. */
static bool populate(char *memory, size_t length, unsigned access)
{
    static char page[PAGE] __attribute__((aligned(PAGE)));
    const int advice = (access & IBV_ACCESS_LOCAL_WRITE) != 0 ? MADV_POPULATE_WRITE
                                                              : MADV_POPULATE_READ;
    char *first = memory - (uintptr_t)memory % PAGE;
    const size_t bytes = ((size_t)(memory + length - first) + PAGE - 1) / PAGE * PAGE;
    return madvise(first, bytes, advice) == 0 ||
           (errno == EINVAL && madvise(page, PAGE, advice) != 0);
}

static struct ibv_mr *finish(fake_region *r, int error)
{
    if (error == 0)
        error = add_region(r);
    if (error == 0)
        return &r->base;
    if (r->mapped != NULL)
        munmap(r->mapped, r->mapped_bytes);
    free(r);
    errno = error;
    return NULL;
}

static fake_region *new_region(struct ibv_pd *pd, size_t length, uint64_t iova, unsigned access)
{
    fake_region *r = fake_failure("reg_mr") == 0 ? calloc(1, sizeof *r) : NULL;
    if (r == NULL)
        return NULL;
    r->base.context = pd->context;
    r->base.pd = pd;
    r->base.length = length;
    r->iova = iova;
    r->access = access;
    return r;
}

void fake_ibverbs_peer_memory(void *seen, void *real, size_t bytes)
{
    fake_lock();
    peer_memory.seen = seen;
    peer_memory.real = real;
    peer_memory.bytes = bytes;
    fake_unlock();
}

/* @return the real address of device memory; NULL: it is not a device's. */
static char *at_peer(const char *memory, size_t length)
{
    char *at = NULL;
    fake_lock();
    const size_t offset = (uintptr_t)memory - (uintptr_t)peer_memory.seen;
    if (offset < peer_memory.bytes && length <= peer_memory.bytes - offset)
        at = peer_memory.real + offset;
    fake_unlock();
    return at;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *memory, size_t length, uint64_t iova,
                                unsigned access)
{
    fake_region *r = new_region(pd, length, iova, access);
    if (r == NULL)
        return NULL;
    char *at = at_peer(memory, length);
    r->base.addr = memory;
    r->memory = at != NULL ? at : memory;
    if (!allowed((uintptr_t)memory, length, iova, access))
        return finish(r, EINVAL);
    if (at != NULL)
        return finish(r, 0);
    return finish(r, populate(memory, length, access) ? 0 : EFAULT);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *memory, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, memory, length, (uintptr_t)memory, (unsigned)access);
}

/* Any file that can be mapped stands for a dma-buf, which begins where the descriptor is. */
static int map(fake_region *r, uint64_t offset, int fd)
{
    const off_t begin = lseek(fd, 0, SEEK_CUR);
    const uint64_t skew = offset % PAGE;
    r->mapped_bytes = r->base.length + skew;
    void *at = mmap(NULL, r->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                    begin + (off_t)(offset - skew));
    if (at == MAP_FAILED)
        return errno;
    r->mapped = at;
    r->memory = (char *)at + skew;
    return 0;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                 int fd, int access)
{
    fake_lock();
    dmabuf = (fake_ibverbs_dmabuf){dmabuf.calls + 1, offset, length, iova, fd, access};
    fake_unlock();
    if (fake_settings_get()->no_dmabuf) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (fake_failure("reg_dmabuf_mr") != 0)
        return NULL;
    if (fd < 0) {
        errno = EBADF;
        return NULL;
    }
    fake_region *r = new_region(pd, length, iova, (unsigned)access);
    if (r == NULL)
        return NULL;
    r->base.addr = (void *)(uintptr_t)iova;
    return finish(r, allowed(offset, length, iova, (unsigned)access) ? map(r, offset, fd) : EINVAL);
}

void fake_ibverbs_dmabuf_calls(fake_ibverbs_dmabuf *out)
{
    fake_lock();
    *out = dmabuf;
    fake_unlock();
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    fake_region *r = (fake_region *)(void *)mr;
    const int error = fake_failure("dereg_mr");
    if (error != 0)
        return error;
    fake_lock();
    regions[mr->handle % MOST_SLOTS] = NULL;
    count_region(r, false);
    fake_unlock();
    if (r->mapped != NULL)
        munmap(r->mapped, r->mapped_bytes);
    free(r->pinned);
    free(r);
    return 0;
}

/* ---- Pages that go ---- */

static void keep_pages(fake_region *r)
{
    char *pinned = malloc(r->base.length);
    if (pinned == NULL)
        fake_misuse("no memory for", "pinned pages");
    memcpy(pinned, r->memory, r->base.length);
    r->memory = r->pinned = pinned;
}

void fake_ibverbs_pages_go(const void *memory, size_t bytes)
{
    const uintptr_t from = (uintptr_t)memory;
    fake_lock();
    for (int i = 0; i < MOST_SLOTS; i++) {
        fake_region *r = regions[i];
        if (r != NULL && r->pinned == NULL && r->mapped == NULL &&
            (uintptr_t)r->memory < from + bytes && from < (uintptr_t)r->memory + r->base.length)
            keep_pages(r);
    }
    fake_unlock();
}

/* ---- Access ---- */

char *fake_memory_at(const struct ibv_pd *pd, uint32_t key, bool remote, uint64_t address,
                     size_t bytes, unsigned access)
{
    const fake_region *r = region_of(key, remote);
    if (r == NULL || r->base.pd != pd || (r->access & access) != access)
        return NULL;
    const uint64_t offset = address - r->iova; /* huge if it lies before */
    if (bytes > r->base.length || offset > r->base.length - bytes)
        return NULL;
    return r->memory + offset;
}

bool fake_spans_of(fake_spans *out, const struct ibv_pd *pd, const struct ibv_sge *sges, int count,
                   unsigned access)
{
    out->count = 0;
    for (int i = 0; i < count; i++) {
        const struct ibv_sge *s = &sges[i];
        char *at = s->length > 0 ? fake_memory_at(pd, s->lkey, false, s->addr, s->length, access)
                                 : NULL;
        if (s->length > 0 && at == NULL)
            return false;
        if (at == NULL)
            continue;
        out->span[out->count].at = at;
        out->span[out->count++].bytes = s->length;
    }
    return true;
}

size_t fake_spans_bytes(const fake_spans *spans)
{
    size_t bytes = 0;
    for (int i = 0; i < spans->count; i++)
        bytes += spans->span[i].bytes;
    return bytes;
}
