/* SPDX-License-Identifier: Apache-2.0
 * Making, keeping and ending automatic regions. Watchers are notified, and memory is watched,
 * without the lock. */
#include "automatic.h"

#include "accelerators.h"
#include "region_ends.h"
#include "region_waiting.h"

#include <sys/resource.h>
#include <unistd.h>

/* Buffers that cannot be watched are remembered, for so many calls each: finding out takes time. */
enum { REFUSED = 64, REFUSED_CALLS = 100 };

_Static_assert(TABLE_AUTOMATIC >= 2 * AUTOMATIC_MOST, "those that end leave room, and ids rest");

typedef struct refusal {
    const char *base;
    size_t bytes;
    unsigned calls; /* to come */
} refusal;

/* Guarded by region_table.lock. */
static struct {
    size_t most; /* set by a test, 0: not */
    uint64_t clock;
    refusal refused[REFUSED];
} automatic;

static _Atomic bool forbidden;

/* Those of accelerators are looked at by each call. */
static bool is_whole(const region_slot *s)
{
    return s->kind == REGION_DEVICE || watched_is_whole(table_number(s));
}

/* ---- Ends ------------------------------------------------------------------------- */

/* @param all  else those that have changed. Backwards: what ends leaves the list. */
static bool end_idle(bool all)
{
    bool ended = false;
    for (uint32_t i = region_table.count; i-- > 0;) {
        region_slot *s = table_at(i);
        if (table_is_automatic(s) && (s->users == 0 || !all) && (all || !is_whole(s)))
            ended |= automatic_end(s);
    }
    return ended;
}

bool automatic_drop_idle(void)
{
    pthread_mutex_lock(&region_table.lock);
    const bool dropped = end_idle(true);
    pthread_mutex_unlock(&region_table.lock);
    automatic_notify();
    return dropped;
}

/* ---- Room ------------------------------------------------------------------------- */

size_t automatic_most(void)
{
    struct rlimit locked;
    const size_t pages = (size_t)sysconf(_SC_PHYS_PAGES), page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t most = pages / 4 * page;
    if (automatic.most > 0)
        return automatic.most;
    if (getrlimit(RLIMIT_MEMLOCK, &locked) != 0 || locked.rlim_cur == RLIM_INFINITY)
        return most;
    return min_size(most, locked.rlim_cur / 2);
}

void automatic_set_most(size_t bytes)
{
    pthread_mutex_lock(&region_table.lock);
    automatic.most = bytes;
    pthread_mutex_unlock(&region_table.lock);
}

static region_slot *least_recent(void)
{
    region_slot *least = NULL;
    for (uint32_t i = 0; i < region_table.count; i++) {
        region_slot *s = table_at(i);
        if (table_is_automatic(s) && s->users == 0 &&
            (least == NULL || s->used_at < least->used_at))
            least = s;
    }
    return least;
}

static bool make_room(size_t bytes)
{
    const automatic_counts *now = &region_table.automatic;
    const size_t most = automatic_most();
    if (bytes > most)
        return false;
    while (now->bytes > most - bytes || now->regions >= AUTOMATIC_MOST) {
        region_slot *least = least_recent();
        if (least == NULL)
            return false;
        (void)automatic_end(least);
    }
    return true;
}

/* Regions that calls use, and users' own, stay: then it fails. */
static bool clear_overlaps(const char *base, size_t bytes)
{
    region_slot *other;
    while ((other = table_overlap(base, bytes)) != NULL) {
        if (!table_is_automatic(other) || other->users > 0)
            return false;
        (void)automatic_end(other);
    }
    return !regions_wait_for(base, bytes);
}

/* ---- Refusals --------------------------------------------------------------------- */

static refusal *refusal_of(const char *base)
{
    return &automatic.refused[((uintptr_t)base >> 12) % REFUSED];
}

static bool was_refused(const char *base, size_t bytes)
{
    refusal *r = refusal_of(base);
    if (r->base != base || r->bytes != bytes || r->calls == 0)
        return false;
    r->calls--;
    return true;
}

/* ---- Making ----------------------------------------------------------------------- */

static region_slot *reserve(const char *base, size_t bytes)
{
    if (was_refused(base, bytes) || !clear_overlaps(base, bytes) || !make_room(bytes))
        return NULL;
    return table_take(true);
}

static uint64_t use(region_slot *s, const char *ptr)
{
    s->users++;
    s->used_at = ++automatic.clock;
    return table_ref(s, ptr);
}

/* Meanwhile another thread, or a user, may have registered an overlapping region. */
static uint64_t list(region_slot *s, const char *base, size_t bytes, bool watched)
{
    if (watched && clear_overlaps(base, bytes)) {
        s->base = (char *)(uintptr_t)base;
        s->bytes = bytes;
        table_list(s);
        region_table.automatic.regions++;
        region_table.automatic.bytes += bytes;
        region_table.automatic.made++;
        return use(s, base);
    }
    if (!watched)
        *refusal_of(base) = (refusal){base, bytes, REFUSED_CALLS};
    watched_end(table_number(s));
    table_give_back(s);
    return 0;
}

static uint64_t make(const char *base, size_t bytes)
{
    pthread_mutex_lock(&region_table.lock);
    region_slot *s = reserve(base, bytes);
    pthread_mutex_unlock(&region_table.lock);
    automatic_notify();
    if (s == NULL)
        return 0;
    const bool watched = watched_begin(table_number(s), base, bytes);
    pthread_mutex_lock(&region_table.lock);
    const uint64_t ref = list(s, base, bytes, watched);
    pthread_mutex_unlock(&region_table.lock);
    automatic_notify();
    return ref;
}

/* ---- Holding ---------------------------------------------------------------------- */

/* Holds an existing region, if its pages are the same. */
static uint64_t hold_kept(const char *ptr, size_t bytes)
{
    if (watched_has_news())
        (void)end_idle(false);
    region_slot *s = table_around(ptr, bytes);
    if (s == NULL || !table_is_automatic(s) || s->ended)
        return 0;
    if (!watched_is_whole(table_number(s))) {
        (void)automatic_end(s);
        return 0;
    }
    region_table.automatic.held++;
    return use(s, ptr);
}

uint64_t automatic_hold(const void *ptr, size_t bytes)
{
    uint64_t ref = region_hold(ptr, bytes);
    if (ref != 0 || bytes < AUTOMATIC_LEAST_BYTES || watched_is_refused() ||
        atomic_load_explicit(&forbidden, memory_order_relaxed))
        return ref;
    pthread_mutex_lock(&region_table.lock);
    ref = hold_kept(ptr, bytes);
    const bool ended = region_table.leaving > 0;
    pthread_mutex_unlock(&region_table.lock);
    if (ended)
        automatic_notify();
    return ref != 0 ? ref : make(ptr, bytes);
}

/* ---- Memory of accelerators ------------------------------------------------------- */

static bool is_of(const region_slot *s, const accelerator *by, const accelerator_allocation *a)
{
    return s->kind == REGION_DEVICE && !s->ended && s->accelerator == by && s->base == a->base &&
           s->bytes == a->bytes && s->allocation == a->id;
}

/* Ends regions of memory that was freed. */
static void end_devices(const char *base, size_t bytes)
{
    uint32_t place = table_first_near(base, bytes);
    while (place < region_table.count && table_overlaps(table_at(place), base, bytes)) {
        region_slot *s = table_at(place);
        place += s->kind != REGION_DEVICE || !table_is_automatic(s) || !automatic_end(s);
    }
}

/* Without a free place the memory can be used all the same, but adapters do not reach it. */
static void keep_device(const accelerator *by, const accelerator_allocation *a)
{
    region_slot *s = table_overlap(a->base, a->bytes);
    if (s != NULL && table_is_automatic(s) && is_of(s, by, a)) {
        s->used_at = ++automatic.clock;
        return;
    }
    end_devices(a->base, a->bytes);
    s = clear_overlaps(a->base, a->bytes) && make_room(0) ? table_take(true) : NULL;
    if (s == NULL)
        return;
    s->base = a->base;
    s->bytes = a->bytes;
    s->kind = REGION_DEVICE;
    s->accelerator = by;
    s->allocation = a->id;
    s->used_at = ++automatic.clock;
    table_list(s);
    region_table.automatic.regions++;
    region_table.automatic.made++;
}

/* Users' regions stay as they are until they are removed. */
static bool is_registered(const void *at, region *r)
{
    return region_find(region_ref(at, 1), r) && !r->automatic;
}

ring_status automatic_device(const void *at, size_t bytes, const accelerator **by, bool *whole)
{
    region r;
    accelerator_allocation a;
    const bool asks = !is_registered(at, &r) && accelerators_are_there();
    if (!asks) {
        *by = r.accelerator;
        *whole = region_accelerator(region_ref(at, bytes)) == *by;
        return RING_OK;
    }
    RING_TRY(accelerators_of_memory(at, bytes, &a, by));
    pthread_mutex_lock(&region_table.lock);
    if (*by != NULL)
        keep_device(*by, &a);
    else
        end_devices(at, bytes);
    pthread_mutex_unlock(&region_table.lock);
    automatic_notify();
    *whole = *by == NULL || (size_t)((const char *)at - (char *)a.base) + bytes <= a.bytes;
    return RING_OK;
}

/* ---- Life ------------------------------------------------------------------------- */

void automatic_forbid(const char *why)
{
    if (!atomic_exchange(&forbidden, true))
        log_info("unregistered memory is copied: %s", why);
}

void automatic_enter(void)
{
    pthread_mutex_lock(&region_table.lock);
    region_table.communicators++;
    pthread_mutex_unlock(&region_table.lock);
}

/* A region that a call still uses ends with it. */
static bool leave_locked(void)
{
    if (--region_table.communicators > 0)
        return false;
    for (uint32_t i = region_table.count; i-- > 0;)
        if (table_is_automatic(table_at(i)))
            (void)automatic_end(table_at(i));
    return true;
}

void automatic_leave(void)
{
    pthread_mutex_lock(&region_table.lock);
    const bool last = leave_locked();
    pthread_mutex_unlock(&region_table.lock);
    automatic_notify();
    if (last)
        watched_close();
}

void automatic_count(automatic_counts *out)
{
    pthread_mutex_lock(&region_table.lock);
    *out = region_table.automatic;
    pthread_mutex_unlock(&region_table.lock);
}
