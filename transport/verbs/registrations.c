/* SPDX-License-Identifier: Apache-2.0
 * Keeps the list of all registrations of the process, sorted by address. A counter grows whenever a
 * registration ends, so that a link detects that the registration which it used last may be
 * invalid. */
#include "registrations.h"

#include "automatic.h"
#include "device_memory.h"
#include "heap.h"
#include "regions.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct entry {
    registration shown; /* the part that links see */
    struct ibv_mr *mr[ADAPTER_MOST_DEVICES];
    bool automatic;                           /* of an automatic region (automatic.h) */
    uint32_t refused;                         /* bits of devices that have refused the memory */
    pci_distance apart[ADAPTER_MOST_DEVICES]; /* from the accelerator to each device */
} entry;

static struct {
    pthread_mutex_t lock;
    entry **entries; /* sorted by `base` */
    size_t count, room;
    _Atomic uint64_t ended; /* number of times that registrations have ended, plus 1 */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = 1};

/* A child starts with an empty list, because the registrations belong to the parent. */
static void in_child(void)
{
    pthread_mutex_init(&process.lock, NULL);
    process.entries = NULL;
    process.count = process.room = 0;
    atomic_fetch_add(&process.ended, 1);
}

/* ---- The list ----------------------------------------------------------------------------- */

/* @return the number of registrations that begin at or before @p at. */
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

/* @return the entry that contains @p ptr; NULL if there is none. */
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

/* Ends all registrations that begin in the given bytes of a region. Called when the region, or an
 * allocation of the heap, is about to be freed. */
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

struct ibv_mr *registration_of_link(const adapter_device *device, void *base, size_t bytes)
{
    const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    struct ibv_mr *mr = adapter_register(device, base, bytes, access);
    if (mr != NULL)
        return mr;
    (void)automatic_drop_idle(); /* if it drops none, another thread may still have made room */
    return adapter_register(device, base, bytes, access);
}

/* Registering automatic regions may fail often, so such a failure is logged only once. */
static void log_refusal(const entry *e, const adapter_device *device)
{
    static _Atomic bool logged;
    if (e->automatic && atomic_exchange(&logged, true))
        return;
    log_at(
        e->automatic ? LOG_INFO : LOG_WARN,
        "verbs: adapter %s cannot register %zu byte%s (%m), so they are copied; raise the limit on "
        "locked memory (ulimit -l, LimitMEMLOCK=infinity)",
        device->name, e->shown.bytes, plural(e->shown.bytes));
}

/* Registers host memory with one device.
 * @param last  this is the last attempt, so a failure is recorded in `refused`. */
static struct ibv_mr *register_at(entry *e, const adapter_device *device, unsigned access,
                                  bool last)
{
    struct ibv_mr *mr = adapter_register(device, e->shown.base, e->shown.bytes, access);
    if (mr != NULL || !last)
        return mr;
    e->refused |= 1u << device->index;
    log_refusal(e, device);
    return NULL;
}

/* Registers an entry with the devices of @p by that do not have it yet.
 * @param share  NULL: host memory. */
static void register_with(entry *e, const registration_user *by, const accelerator_share *share,
                          bool last)
{
    const adapter_port *ports;
    const int count = adapter_ports(&ports);
    const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ |
                            (by->relaxed ? (unsigned)IBV_ACCESS_RELAXED_ORDERING : 0u);
    for (int i = 0; i < count; i++) {
        adapter_device *device = ports[i].device;
        const int d = device->index;
        if ((by->devices & ~e->refused & 1u << d) == 0 || e->mr[d] != NULL)
            continue;
        struct ibv_mr *mr = NULL;
        if (share == NULL)
            mr = register_at(e, device, access, last);
        else /* logs its failures itself */
            mr = device_memory_register(device, share, e->shown.base, e->shown.bytes, access);
        if (mr == NULL) {
            e->refused |= share != NULL ? 1u << d : 0u;
            continue;
        }
        e->mr[d] = mr;
        e->shown.local[d] = mr->lkey;
        e->shown.remote[d] = mr->rkey;
    }
}

/* Registers accelerator memory with the devices of @p by. */
static void register_shared(entry *e, const registration_user *by)
{
    const accelerator *of = e->shown.of;
    accelerator_share share;
    if (of->share(of, e->shown.base, e->shown.bytes, &share) != RING_OK) {
        e->refused = UINT32_MAX;
        log_warn("verbs: %zu byte%s of %s must be copied through host memory: %s", e->shown.bytes,
                 plural(e->shown.bytes), of->name, fail_text());
        return;
    }
    register_with(e, by, &share, true);
    if (share.dmabuf >= 0)
        close(share.dmabuf); /* the registrations hold their own references to the memory */
}

static bool has_keys(const entry *e, uint32_t devices)
{
    for (int d = 0; d < ADAPTER_MOST_DEVICES; d++)
        if ((devices & 1u << d) != 0 && e->mr[d] == NULL)
            return false;
    return true;
}

/* Registers an entry with all devices of @p by. @param last  as in register_at(). @return true if
 * the entry then has the keys of all these devices. */
static bool equip(entry *e, const registration_user *by, bool last)
{
    if (has_keys(e, by->devices))
        return true;
    if ((e->refused & by->devices) != 0)
        return false;
    if (e->shown.of != NULL)
        register_shared(e, by);
    else
        register_with(e, by, NULL, last);
    return has_keys(e, by->devices);
}

/* ---- Memory of accelerators --------------------------------------------------------------- */

/* Determines and logs the distance from the entry's accelerator to each device. */
static void measure(entry *e)
{
    const adapter_port *ports;
    const int count = adapter_ports(&ports);
    for (int i = 0; i < count; i++) {
        const adapter_device *device = ports[i].device;
        e->apart[device->index] = device_memory_distance(device, e->shown.of);
        log_info("verbs: the distance from %s to adapter %s is %s", e->shown.of->name, device->name,
                 pci_distance_word(e->apart[device->index]));
    }
}

/* @return true for host memory, and if the accelerator is near enough to the device in use. */
static bool is_near(const entry *e, const registration_user *by)
{
    return e->shown.of == NULL || (by->farthest != PCI_LOC && e->apart[by->first] <= by->farthest);
}

/* ---- Finding ------------------------------------------------------------------------------ */

/* Finds the memory that would be registered for @p ptr: its allocation if it is on the heap,
 * otherwise its whole region. @return false if the memory cannot be registered. */
static bool find_memory(const void *ptr, size_t bytes, registration *out, bool *automatic)
{
    const uint64_t ref = region_ref(ptr, bytes);
    region r;
    void *base;
    if (ref == 0 || !region_find(ref, &r) ||
        (r.accelerator != NULL && r.accelerator->share == NULL))
        return false;
    *out = (registration){.region = r.id, .base = r.base, .bytes = r.bytes, .of = r.accelerator};
    *automatic = r.automatic;
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

/* @return the entry of @p memory; NULL: no memory. An entry at the same address whose memory no
 * longer exists is replaced. */
static entry *find_or_add(const registration *memory)
{
    entry *e = find(memory->base);
    if (e != NULL && (e->shown.region != memory->region || e->shown.offset != memory->offset ||
                      e->shown.bytes != memory->bytes)) {
        remove_at(places_until(memory->base) - 1);
        e = find(memory->base);
    }
    if (e != NULL)
        return e;
    e = add(memory);
    if (e != NULL && memory->of != NULL)
        measure(e);
    return e;
}

/* Finds or registers @p memory. @return true with the registration in @p out if it has all keys.
 * @param[out] refused  a retry is useless: a device has refused the memory, the accelerator is too
 *                      far away, or there is no memory for the entry. */
static bool find_keys(const registration *memory, bool automatic, const registration_user *by,
                      bool last, registration *out, bool *refused)
{
    pthread_mutex_lock(&process.lock);
    entry *e = find_or_add(memory);
    if (e != NULL)
        e->automatic = automatic;
    const bool found = e != NULL && is_near(e, by) && equip(e, by, last);
    *refused = e == NULL || !is_near(e, by) || (e->refused & by->devices) != 0;
    if (found)
        *out = e->shown;
    pthread_mutex_unlock(&process.lock);
    return found;
}

bool registration_find(const void *ptr, size_t bytes, const registration_user *by,
                       registration *out, uint64_t *seen)
{
    registration memory;
    bool automatic, refused;
    /* Both counters only grow, so their sum shows whether either has changed. */
    const uint64_t ended = atomic_load_explicit(&process.ended, memory_order_acquire) +
                           regions_ended();
    if (*seen == ended && covers(out, ptr, bytes))
        return true;
    *seen = 0;
    if (!find_memory(ptr, bytes, &memory, &automatic))
        return false;
    bool found = find_keys(&memory, automatic, by, automatic, out, &refused);
    if (!found && !refused) {
        (void)automatic_drop_idle();
        found = find_keys(&memory, automatic, by, true, out, &refused);
    }
    if (found)
        *seen = ended;
    return found && covers(out, ptr, bytes);
}
