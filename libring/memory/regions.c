/* SPDX-License-Identifier: Apache-2.0
 * A table of fixed size: nothing to allocate, nothing to fail, and what is not used is not even
 * committed. An id is a place in it; a sorted list of places finds addresses. */
#include "regions.h"

#include "heap.h"

#include <stdatomic.h>
#include <string.h>

enum { SLOTS = 16384, FIRST_ID = REGION_HEAP_ID + 1 };

typedef struct slot {
    char *base;
    size_t bytes; /* 0: free */
    region_kind kind;
    const struct accelerator *accelerator;
    uint32_t users;      /* calls */
    unsigned generation; /* of the process that registered it, see fork_generation() */
} slot;

static struct {
    pthread_mutex_t lock;
    _Atomic uint32_t count;   /* in use; changes under the lock, as the next */
    _Atomic uint32_t devices; /* of them, those of accelerators */
    bool listed;              /* `order` is filled */
    uint16_t order[SLOTS];    /* those in use by address, then the free ones, longest free first */
    slot slots[SLOTS];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static region_watcher *_Atomic watchers;

/* Calls of the parent hold regions here that nobody will release, and a list that another thread
 * was changing is no list: the child starts anew. */
static void in_child(void)
{
    pthread_mutex_init(&table.lock, NULL);
    table.count = table.devices = 0;
    table.listed = false;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

/* ---- Finding ---------------------------------------------------------------------- */

static slot *slot_at(uint32_t place)
{
    return &table.slots[table.order[place]];
}

/* How many regions begin at @p at or before. */
static uint32_t places_until(const char *at)
{
    uint32_t low = 0, high = table.count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if ((uintptr_t)slot_at(middle)->base <= (uintptr_t)at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool contains(const slot *s, size_t offset, size_t bytes)
{
    return bytes <= s->bytes && offset <= s->bytes - bytes;
}

static uint64_t make_ref(uint64_t id, uint64_t offset)
{
    return id << REGION_OFFSET_BITS | offset;
}

static size_t offset_of(uint64_t ref)
{
    return (size_t)(ref & ((UINT64_C(1) << REGION_OFFSET_BITS) - 1));
}

static slot *slot_of(uint64_t ref)
{
    const uint64_t id = ref >> REGION_OFFSET_BITS;
    if (id < FIRST_ID || id >= FIRST_ID + SLOTS)
        return NULL;
    slot *s = &table.slots[id - FIRST_ID];
    return s->bytes > 0 && s->generation == fork_generation() ? s : NULL;
}

/* ---- The table -------------------------------------------------------------------- */

static ring_status refuse_overlap(const char *base, size_t bytes, const slot *other)
{
    return fail(RING_ERR_ARGUMENT,
                "ring_mem_register: %zu bytes at %p overlap the %zu bytes at %p that are "
                "registered already; deregister those first",
                bytes, (const void *)base, other->bytes, (void *)other->base);
}

static void list_slots(void)
{
    for (uint32_t i = 0; i < SLOTS && !table.listed; i++)
        table.order[i] = (uint16_t)i;
    table.listed = true;
}

static ring_status add_locked(char *base, size_t bytes, region_kind kind,
                              const struct accelerator *by)
{
    const uint32_t count = table.count, place = places_until(base);
    if (place > 0 && (size_t)(base - slot_at(place - 1)->base) < slot_at(place - 1)->bytes)
        return refuse_overlap(base, bytes, slot_at(place - 1));
    if (place < count && (size_t)(slot_at(place)->base - base) < bytes)
        return refuse_overlap(base, bytes, slot_at(place));
    if (count == SLOTS)
        return fail(RING_ERR_MEMORY,
                    "ring_mem_register: %d regions are registered, and no more can be; register "
                    "fewer, larger ones",
                    (int)SLOTS);
    list_slots();
    const uint16_t taken = table.order[count];
    memmove(&table.order[place + 1], &table.order[place], (count - place) * sizeof *table.order);
    table.order[place] = taken;
    table.slots[taken] = (slot){.base = base,
                                .bytes = bytes,
                                .kind = kind,
                                .accelerator = by,
                                .generation = fork_generation()};
    table.count = count + 1;
    table.devices += kind == REGION_DEVICE;
    return RING_OK;
}

static ring_status add(void *base, size_t bytes, region_kind kind, const struct accelerator *by)
{
    char *first = base;
    if (first == NULL || bytes == 0 || (uintptr_t)first + (bytes - 1) < (uintptr_t)first ||
        bytes - 1 > offset_of(UINT64_MAX))
        return fail(RING_ERR_ARGUMENT, "ring_mem_register: %zu bytes at %p are no memory", bytes,
                    base);
    if (heap_ref(first, 1) != 0 || heap_ref(first + (bytes - 1), 1) != 0)
        return fail(
            RING_ERR_ARGUMENT,
            "ring_mem_register: %p is memory of ring_mem_alloc, which peers reach without it",
            base);
    pthread_mutex_lock(&table.lock);
    const ring_status status = add_locked(first, bytes, kind, by);
    pthread_mutex_unlock(&table.lock);
    return status;
}

ring_status region_add(void *base, size_t bytes, region_kind kind)
{
    return add(base, bytes, kind, NULL);
}

ring_status region_add_device(void *base, size_t bytes, const struct accelerator *by)
{
    return add(base, bytes, REGION_DEVICE, by);
}

static ring_status remove_locked(const char *base, uint16_t *id, size_t *bytes)
{
    const uint32_t place = places_until(base);
    slot *s = place > 0 ? slot_at(place - 1) : NULL;
    if (s == NULL || s->base != base)
        return fail(RING_ERR_ARGUMENT,
                    "ring_mem_deregister: %p was not given to ring_mem_register in this process",
                    (const void *)base);
    if (s->users > 0)
        return fail(
            RING_ERR_USAGE,
            "ring_mem_deregister: running calls (%u) use the %zu bytes at %p; wait for them first",
            s->users, s->bytes, (const void *)base);
    const uint16_t freed = table.order[place - 1];
    *id = (uint16_t)(FIRST_ID + freed);
    *bytes = s->bytes;
    s->bytes = 0;
    table.devices -= s->kind == REGION_DEVICE;
    memmove(&table.order[place - 1], &table.order[place], (SLOTS - place) * sizeof *table.order);
    table.order[SLOTS - 1] = freed;
    table.count--;
    return RING_OK;
}

static void tell_watchers(uint16_t id, uint64_t offset, size_t bytes)
{
    for (const region_watcher *w = atomic_load(&watchers); w != NULL; w = w->next)
        w->gone(id, offset, bytes);
}

static void heap_is_freeing(size_t offset, size_t bytes)
{
    tell_watchers(REGION_HEAP_ID, offset, bytes);
}

ring_status region_remove(void *base)
{
    uint16_t id = 0;
    size_t bytes = 0;
    pthread_mutex_lock(&table.lock);
    const ring_status status = remove_locked(base, &id, &bytes);
    pthread_mutex_unlock(&table.lock);
    if (status == RING_OK)
        tell_watchers(id, 0, bytes);
    return status;
}

void region_watch(region_watcher *watcher)
{
    heap_watch(heap_is_freeing);
    watcher->next = atomic_load(&watchers);
    while (!atomic_compare_exchange_weak(&watchers, &watcher->next, watcher))
        continue;
}

/* ---- References ------------------------------------------------------------------- */

static uint64_t ref_locked(const char *ptr, size_t bytes, uint32_t users)
{
    const uint32_t place = places_until(ptr);
    slot *s = place > 0 ? slot_at(place - 1) : NULL;
    if (s == NULL || !contains(s, (size_t)(ptr - s->base), bytes))
        return 0;
    s->users += users;
    return make_ref(FIRST_ID + (uint64_t)(s - table.slots), (uint64_t)(ptr - s->base));
}

bool regions_are_registered(void)
{
    return atomic_load_explicit(&table.count, memory_order_relaxed) > 0;
}

bool regions_have_devices(void)
{
    return atomic_load_explicit(&table.devices, memory_order_relaxed) > 0;
}

const struct accelerator *regions_accelerator(void)
{
    const struct accelerator *only = NULL;
    bool several = false;
    if (!regions_have_devices())
        return NULL;
    pthread_mutex_lock(&table.lock);
    for (uint32_t place = 0; place < table.count; place++) {
        const struct accelerator *by = slot_at(place)->accelerator;
        several |= by != NULL && only != NULL && by != only;
        only = by != NULL ? by : only;
    }
    pthread_mutex_unlock(&table.lock);
    return several ? NULL : only;
}

static uint64_t make_use(const void *ptr, size_t bytes, uint32_t users)
{
    const uint64_t in_heap = heap_ref(ptr, bytes);
    if (in_heap != 0)
        return make_ref(REGION_HEAP_ID, in_heap - 1);
    if (!regions_are_registered())
        return 0;
    pthread_mutex_lock(&table.lock);
    const uint64_t ref = ref_locked(ptr, bytes, users);
    pthread_mutex_unlock(&table.lock);
    return ref;
}

uint64_t region_ref(const void *ptr, size_t bytes)
{
    return make_use(ptr, bytes, 0);
}

uint64_t region_hold(const void *ptr, size_t bytes)
{
    return make_use(ptr, bytes, 1);
}

void region_release(uint64_t ref)
{
    if (ref >> REGION_OFFSET_BITS < FIRST_ID)
        return;
    pthread_mutex_lock(&table.lock);
    slot *s = slot_of(ref);
    if (s != NULL)
        s->users--;
    pthread_mutex_unlock(&table.lock);
}

bool region_find(uint64_t ref, region *out)
{
    const uint16_t id = (uint16_t)(ref >> REGION_OFFSET_BITS);
    *out = (region){.id = id, .kind = REGION_SHARED, .base = heap_base(), .bytes = heap_span()};
    if (id == REGION_HEAP_ID)
        return out->base != NULL;
    pthread_mutex_lock(&table.lock);
    const slot *s = slot_of(ref);
    if (s != NULL)
        *out = (region){.id = id,
                        .kind = s->kind,
                        .base = s->base,
                        .bytes = s->bytes,
                        .accelerator = s->accelerator};
    pthread_mutex_unlock(&table.lock);
    return s != NULL;
}

const struct accelerator *region_accelerator(uint64_t ref)
{
    region r;
    return ref >> REGION_OFFSET_BITS >= FIRST_ID && region_find(ref, &r) ? r.accelerator : NULL;
}

void *region_address(uint64_t ref, size_t bytes)
{
    region r;
    const size_t offset = offset_of(ref);
    if (!region_find(ref, &r) || bytes > r.bytes || offset > r.bytes - bytes)
        return NULL;
    return r.base + offset;
}
