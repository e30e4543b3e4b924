/* SPDX-License-Identifier: Apache-2.0
 * A sorted list of what is registered. A number that grows whenever something ends tells links
 * that what they remember may be over. */
#include "registrations.h"

#include "heap.h"
#include "regions.h"

#include <errno.h>
#include <stdlib.h>

typedef struct entry {
    registration shown;
    struct ibv_mr *mr[ADAPTER_MOST_DEVICES];
    bool refused;
} entry;

static struct {
    pthread_mutex_t lock;
    entry **entries; /* by base */
    size_t count, room;
    _Atomic uint64_t ended; /* how many, and 1 */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = 1};

/* The adapters' keys are the parent's. */
static void in_child(void)
{
    pthread_mutex_init(&process.lock, NULL);
    process.entries = NULL;
    process.count = process.room = 0;
    atomic_fetch_add(&process.ended, 1);
}

/* ---- The list ----------------------------------------------------------------------------- */

/* How many begin at @p at or before. */
static size_t places_until(const char *at)
{
    size_t low = 0, high = process.count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((uintptr_t)process.entries[middle]->shown.base <= (uintptr_t)at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static entry *find(const char *ptr)
{
    const size_t place = places_until(ptr);
    entry *e = place > 0 ? process.entries[place - 1] : NULL;
    return e != NULL && (size_t)(ptr - e->shown.base) < e->shown.bytes ? e : NULL;
}

static bool make_room(void)
{
    if (process.count < process.room)
        return true;
    const size_t room = process.room > 0 ? 2 * process.room : 16;
    entry **entries = realloc(process.entries, room * sizeof(entry *));
    if (entries == NULL)
        return false;
    process.entries = entries;
    process.room = room;
    return true;
}

static entry *add(const registration *what)
{
    entry *e = make_room() ? calloc(1, sizeof *e) : NULL;
    if (e == NULL)
        return NULL;
    const size_t place = places_until(what->base);
    memmove(&process.entries[place + 1], &process.entries[place],
            (process.count - place) * sizeof(entry *));
    process.entries[place] = e;
    process.count++;
    e->shown = *what;
    return e;
}

static void remove_at(size_t place)
{
    entry *e = process.entries[place];
    for (int d = 0; d < ADAPTER_MOST_DEVICES; d++)
        if (e->mr[d] != NULL)
            (void)ibverbs_load()->dereg_mr(e->mr[d]);
    memmove(&process.entries[place], &process.entries[place + 1],
            (--process.count - place) * sizeof(entry *));
    free(e);
}

static void forget(uint16_t id, uint64_t offset, size_t bytes)
{
    pthread_mutex_lock(&process.lock);
    for (size_t i = process.count; i-- > 0;) {
        const registration *r = &process.entries[i]->shown;
        if (r->region == id && r->offset >= offset && r->offset - offset < bytes)
            remove_at(i);
    }
    atomic_fetch_add(&process.ended, 1);
    pthread_mutex_unlock(&process.lock);
}

__attribute__((constructor)) static void watch(void)
{
    static region_watcher watcher = {.gone = forget};
    region_watch(&watcher);
    pthread_atfork(NULL, NULL, in_child);
}

/* ---- Registering -------------------------------------------------------------------------- */

static struct ibv_mr *register_at(const adapter_device *device, void *base, size_t bytes,
                                  bool relaxed)
{
    const ibverbs *api = ibverbs_load();
    const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ;
    if (relaxed)
        return api->reg_mr_iova2(device->pd, base, bytes, (uintptr_t)base,
                                 access | IBV_ACCESS_RELAXED_ORDERING);
    return api->reg_mr(device->pd, base, bytes, (int)access);
}

struct ibv_mr *registration_of_link(const adapter_device *device, void *base, size_t bytes)
{
    return ibverbs_load()->reg_mr(device->pd, base, bytes,
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

static void refuse(entry *e, const adapter_device *device)
{
    e->refused = true;
    log_warn("verbs: %s cannot register %zu bytes (%m), which are copied instead; raise the limit "
             "on locked memory (ulimit -l, LimitMEMLOCK=infinity)",
             device->name, e->shown.bytes);
}

/* @return true if it has keys of all @p devices. */
static bool equip(entry *e, uint32_t devices, bool relaxed)
{
    const adapter_port *ports;
    const int count = adapter_ports(&ports);
    for (int i = 0; i < count && !e->refused; i++) {
        const adapter_device *device = ports[i].device;
        const int d = device->index;
        if ((devices & 1u << d) == 0 || e->mr[d] != NULL)
            continue;
        e->mr[d] = register_at(device, e->shown.base, e->shown.bytes, relaxed);
        if (e->mr[d] == NULL) {
            refuse(e, device);
            continue;
        }
        e->shown.local[d] = e->mr[d]->lkey;
        e->shown.remote[d] = e->mr[d]->rkey;
    }
    return !e->refused;
}

/* What there is to register around @p ptr. */
static bool find_memory(const void *ptr, size_t bytes, registration *out)
{
    const uint64_t ref = region_ref(ptr, bytes);
    region r;
    void *base;
    if (ref == 0 || !region_find(ref, &r) || r.kind == REGION_DEVICE)
        return false;
    *out = (registration){.region = r.id, .base = r.base, .bytes = r.bytes};
    if (r.id != REGION_HEAP_ID)
        return true;
    if (!heap_allocation(ptr, bytes, &base, &out->bytes))
        return false;
    out->base = base;
    out->offset = (uint64_t)(out->base - r.base);
    return true;
}

static bool covers(const registration *r, const char *ptr, size_t bytes)
{
    return ptr >= r->base && bytes <= r->bytes && (size_t)(ptr - r->base) <= r->bytes - bytes;
}

/* One of memory that has just ended may still be there. */
static entry *find_or_add(const registration *memory)
{
    entry *e = find(memory->base);
    if (e != NULL && (e->shown.region != memory->region || e->shown.offset != memory->offset ||
                      e->shown.bytes != memory->bytes)) {
        remove_at(places_until(memory->base) - 1);
        e = find(memory->base);
    }
    return e != NULL ? e : add(memory);
}

bool registration_find(const void *ptr, size_t bytes, uint32_t devices, bool relaxed,
                       registration *out, uint64_t *seen)
{
    registration memory;
    const uint64_t ended = atomic_load_explicit(&process.ended, memory_order_acquire);
    if (*seen == ended && covers(out, ptr, bytes))
        return true;
    *seen = 0;
    if (!find_memory(ptr, bytes, &memory))
        return false;
    pthread_mutex_lock(&process.lock);
    entry *e = find_or_add(&memory);
    const bool found = e != NULL && equip(e, devices, relaxed) && covers(&e->shown, ptr, bytes);
    if (found) {
        *out = e->shown;
        *seen = ended;
    }
    pthread_mutex_unlock(&process.lock);
    return found;
}
