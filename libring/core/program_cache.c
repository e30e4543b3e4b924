/* SPDX-License-Identifier: Apache-2.0
 * Implements the cache of programs as a hash table that is searched by call, and a list in the
 * order of use. The programs that have not been used for longest are evicted. */
#include "program_cache.h"

#include "shape.h"
#include "shared_plan.h"

#include <stdlib.h>

enum { BUCKETS = 256 };

struct program_cache {
    program *buckets[BUCKETS];
    program *latest, *oldest; /* ends of the list in the order of use */
    int32_t count;
    size_t bytes;
    uint64_t lowered;
};

ring_status programs_new(struct program_cache **out)
{
    *out = calloc(1, sizeof **out);
    return *out != NULL
               ? RING_OK
               : fail(RING_ERR_MEMORY, "out of memory while creating the cache of programs");
}

static void unlink_use(struct program_cache *cache, program *p)
{
    *(p->newer != NULL ? &p->newer->older : &cache->latest) = p->older;
    *(p->older != NULL ? &p->older->newer : &cache->oldest) = p->newer;
}

static void link_latest(struct program_cache *cache, program *p)
{
    p->newer = NULL;
    p->older = cache->latest;
    *(cache->latest != NULL ? &cache->latest->newer : &cache->oldest) = p;
    cache->latest = p;
}

/* A plan's memory counts with the last program that uses it. */
static size_t memory_of(const program *p)
{
    return p->memory + (p->from->holders == 1 ? p->from->bytes : 0);
}

static void evict(struct program_cache *cache, program *p)
{
    unlink_use(cache, p);
    *p->link = p->next;
    if (p->next != NULL)
        p->next->link = p->link;
    cache->count--;
    cache->bytes -= memory_of(p);
    program_free(p);
}

void programs_free(struct program_cache *cache)
{
    while (cache != NULL && cache->latest != NULL)
        evict(cache, cache->latest);
    free(cache);
}

/* Evicts old programs until the cache is within its limits. Programs in use always stay, and so
 * does the latest one, even if it alone exceeds the limits. */
static void keep_bounds(struct program_cache *cache)
{
    program *newer;
    for (program *p = cache->oldest; p != cache->latest; p = newer) {
        if (cache->count <= PROGRAMS_MOST && cache->bytes <= PROGRAMS_MOST_BYTES)
            return;
        newer = p->newer;
        if (p->users == 0 && atomic_load(&p->kept) == 0)
            evict(cache, p);
    }
}

static program **bucket_of(struct program_cache *cache, const call_signature *call)
{
    uint64_t h = (uint64_t)call->collective ^ (uint64_t)call->dtype << 8 ^
                 (uint64_t)call->op << 16 ^ (uint64_t)(uint32_t)call->root << 24;
    h ^= call->digest;
    h = (h ^ call->count * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0x9e3779b97f4a7c15);
    return &cache->buckets[h >> 56];
}

static bool same_call(const ring_comm *comm, const program *p, const call_signature *b)
{
    const call_signature *a = &p->call;
    return a->collective == b->collective && a->count == b->count && a->dtype == b->dtype &&
           a->op == b->op && a->root == b->root && a->tagged == b->tagged &&
           a->on_device == b->on_device &&
           (a->shape == NULL || shape_is_same(a->shape, b->shape, comm->ranks));
}

static void keep(struct program_cache *cache, program *p)
{
    program **bucket = bucket_of(cache, &p->call);
    p->next = *bucket;
    p->link = bucket;
    if (p->next != NULL)
        p->next->link = &p->next;
    *bucket = p;
    link_latest(cache, p);
    cache->count++;
    cache->bytes += memory_of(p);
    cache->lowered++;
    keep_bounds(cache);
}

ring_status programs_get(ring_comm *comm, const call_signature *call, program **out)
{
    struct program_cache *cache = comm->programs;
    program *p = cache->latest;
    if (p != NULL && same_call(comm, p, call)) {
        *out = p;
        return RING_OK;
    }
    for (p = *bucket_of(cache, call); p != NULL && !same_call(comm, p, call); p = p->next)
        continue;
    if (p == NULL) {
        RING_TRY(program_new(comm, cache->latest, call, &p));
        keep(cache, p);
    } else if (p->newer != cache->latest) { /* the two latest programs may stay in any order */
        unlink_use(cache, p);
        link_latest(cache, p);
    }
    *out = p;
    return RING_OK;
}

uint64_t programs_lowered(const struct program_cache *cache)
{
    return cache->lowered;
}

int32_t programs_kept(const struct program_cache *cache, size_t *bytes)
{
    *bytes = cache->bytes;
    return cache->count;
}
