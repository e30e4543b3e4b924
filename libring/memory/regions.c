/* SPDX-License-Identifier: Apache-2.0
 * Registers and removes users' regions, and makes and resolves references to all regions. */
#include "regions.h"

#include "accelerators.h"
#include "heap.h"
#include "region_ends.h"
#include "region_waiting.h"

#include <string.h>

/* Empties the table in a forked child. The child could not release the regions that calls of the
 * parent hold, and another thread may have been changing the list during the fork. */
static void in_child(void)
{
    struct region_table *t = &region_table;
    pthread_mutex_init(&t->lock, NULL);
    t->count = t->devices = t->waiting = t->leaving = 0;
    t->free_users = t->free_automatic = (place_queue){0};
    t->communicators = 0;
    t->automatic = (automatic_counts){0};
    region_ends_forget();
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

/* ---- Adding ----------------------------------------------------------------------- */

static ring_status refuse_overlap(const char *base, size_t bytes, const region_slot *other)
{
    return fail(RING_ERR_ARGUMENT,
                "ring_mem_register: %zu byte%s at %p overlap the %zu byte%s at %p that are "
                "registered already; deregister those first",
                bytes, plural(bytes), (const void *)base, other->bytes, plural(other->bytes),
                (void *)other->base);
}

/* Ends the automatic regions that overlap a new region of a user.
 * @param[out] waits  true if a running call still uses one of them.
 * @return RING_ERR_ARGUMENT if a user's region overlaps it. */
static ring_status clear_overlaps(const char *base, size_t bytes, bool *waits)
{
    *waits = false;
    const region_slot *waiting = region_waiting_over(base, bytes);
    if (waiting != NULL)
        return refuse_overlap(base, bytes, waiting);
    uint32_t place = table_first_near(base, bytes);
    while (place < region_table.count && table_overlaps(table_at(place), base, bytes)) {
        region_slot *other = table_at(place);
        if (!table_is_automatic(other))
            return refuse_overlap(base, bytes, other);
        if (automatic_end(other))
            continue;
        *waits = true;
        place++;
    }
    return RING_OK;
}

static ring_status add_locked(char *base, size_t bytes, region_kind kind,
                              const struct accelerator *by)
{
    bool waits;
    RING_TRY(clear_overlaps(base, bytes, &waits));
    region_slot *s = table_take(false);
    if (s == NULL)
        return fail(RING_ERR_MEMORY,
                    "ring_mem_register: the limit of %d regions is reached; register fewer, larger "
                    "regions",
                    (int)TABLE_USERS);
    s->base = base;
    s->bytes = bytes;
    s->kind = kind;
    s->accelerator = by;
    region_list_or_wait(s, waits);
    return RING_OK;
}

/* Checks and registers a user's region. @param by  its accelerator, or NULL. */
static ring_status add(void *base, size_t bytes, region_kind kind, const struct accelerator *by)
{
    char *first = base;
    if (first == NULL || bytes == 0 || (uintptr_t)first + (bytes - 1) < (uintptr_t)first ||
        bytes - 1 > region_offset_of(UINT64_MAX))
        return fail(RING_ERR_ARGUMENT, "ring_mem_register: %zu byte%s at %p are not valid memory",
                    bytes, plural(bytes), base);
    if (heap_ref(first, 1) != 0 || heap_ref(first + (bytes - 1), 1) != 0)
        return fail(
            RING_ERR_ARGUMENT,
            "ring_mem_register: %p is memory of ring_mem_alloc, which needs no registration", base);
    pthread_mutex_lock(&region_table.lock);
    const ring_status status = add_locked(first, bytes, kind, by);
    pthread_mutex_unlock(&region_table.lock);
    automatic_notify();
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

/* ---- Removing --------------------------------------------------------------------- */

/* @return the user's region that begins at @p base; NULL if there is none.
 * @param[out] waiting  its place among the waiting regions, if it waits. */
static region_slot *find_users(const char *base, uint32_t *waiting)
{
    const uint32_t place = table_places_until(base);
    for (*waiting = 0; *waiting < region_table.waiting; ++*waiting)
        if (region_waiting_at(*waiting)->base == base)
            return region_waiting_at(*waiting);
    region_slot *s = place > 0 ? table_at(place - 1) : NULL;
    return s != NULL && s->base == base && !table_is_automatic(s) ? s : NULL;
}

static ring_status remove_locked(const char *base, uint64_t *ref, size_t *bytes)
{
    uint32_t waiting;
    region_slot *s = find_users(base, &waiting);
    if (s == NULL)
        return fail(RING_ERR_ARGUMENT,
                    "ring_mem_deregister: %p was not given to ring_mem_register in this process",
                    (const void *)base);
    if (s->users > 0)
        return fail(
            RING_ERR_USAGE,
            "ring_mem_deregister: running calls (%u) use the %zu byte%s at %p; wait for them first",
            s->users, s->bytes, plural(s->bytes), (const void *)base);
    *ref = table_ref(s, base);
    *bytes = s->bytes;
    if (s->waits)
        region_unwait(waiting);
    else
        table_unlist(s);
    table_give_back(s);
    return RING_OK;
}

ring_status region_remove(void *base)
{
    uint64_t ref = 0;
    size_t bytes = 0;
    pthread_mutex_lock(&region_table.lock);
    const ring_status status = remove_locked(base, &ref, &bytes);
    pthread_mutex_unlock(&region_table.lock);
    if (status == RING_OK)
        regions_notify_watchers(region_id_of(ref), 0, bytes);
    return status;
}

/* ---- References ------------------------------------------------------------------- */

bool regions_are_registered(void)
{
    return atomic_load_explicit(&region_table.count, memory_order_relaxed) > 0;
}

uint64_t regions_ended(void)
{
    return atomic_load_explicit(&region_table.ended, memory_order_acquire);
}

bool regions_have_devices(void)
{
    return atomic_load_explicit(&region_table.devices, memory_order_relaxed) > 0 ||
           accelerators_are_there();
}

const struct accelerator *regions_accelerator(void)
{
    const struct accelerator *only = NULL;
    bool several = false;
    if (!regions_have_devices())
        return NULL;
    pthread_mutex_lock(&region_table.lock);
    for (uint32_t place = 0; place < region_table.count; place++) {
        const struct accelerator *by = table_at(place)->accelerator;
        several |= by != NULL && only != NULL && by != only;
        only = by != NULL ? by : only;
    }
    pthread_mutex_unlock(&region_table.lock);
    return several ? NULL : only;
}

/* Implements region_ref() and, with @p holds, region_hold(). */
static uint64_t make_ref(const void *ptr, size_t bytes, bool holds)
{
    const uint64_t in_heap = heap_ref(ptr, bytes);
    if (in_heap != 0)
        return region_ref_to(REGION_HEAP_ID, in_heap - 1);
    if (!regions_are_registered())
        return 0;
    uint64_t ref = 0;
    pthread_mutex_lock(&region_table.lock);
    region_slot *s = table_around(ptr, bytes);
    /* Only automatic_hold() may hold an automatic region of the host's memory. */
    if (s != NULL &&
        (!holds || !table_is_automatic(s) || (s->kind == REGION_DEVICE && !s->ended))) {
        s->users += holds;
        ref = table_ref(s, ptr);
    }
    pthread_mutex_unlock(&region_table.lock);
    return ref;
}

uint64_t region_ref(const void *ptr, size_t bytes)
{
    return make_ref(ptr, bytes, false);
}

uint64_t region_hold(const void *ptr, size_t bytes)
{
    return make_ref(ptr, bytes, true);
}

void region_release(uint64_t ref)
{
    bool ends = false;
    if (region_id_of(ref) < FIRST_ID)
        return;
    pthread_mutex_lock(&region_table.lock);
    region_slot *s = table_of(ref);
    if (s != NULL && table_is_automatic(s))
        ends = automatic_release(s);
    else if (s != NULL)
        s->users--;
    pthread_mutex_unlock(&region_table.lock);
    if (ends)
        automatic_notify();
}

bool region_find(uint64_t ref, region *out)
{
    const uint16_t id = region_id_of(ref);
    *out = (region){.id = id, .kind = REGION_SHARED, .base = heap_base(), .bytes = heap_span()};
    if (id == REGION_HEAP_ID)
        return out->base != NULL;
    pthread_mutex_lock(&region_table.lock);
    const region_slot *s = table_of(ref);
    if (s != NULL)
        *out = (region){.id = id,
                        .kind = s->kind,
                        .automatic = table_is_automatic(s),
                        .base = s->base,
                        .bytes = s->bytes,
                        .accelerator = s->accelerator};
    pthread_mutex_unlock(&region_table.lock);
    return s != NULL;
}

const struct accelerator *region_accelerator(uint64_t ref)
{
    region r;
    return region_id_of(ref) >= FIRST_ID && region_find(ref, &r) ? r.accelerator : NULL;
}

void *region_address(uint64_t ref, size_t bytes)
{
    region r;
    const uint64_t offset = region_offset_of(ref);
    if (!region_find(ref, &r) || bytes > r.bytes || offset > r.bytes - bytes)
        return NULL;
    return r.base + offset;
}
