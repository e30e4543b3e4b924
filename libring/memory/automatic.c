/* SPDX-License-Identifier: Apache-2.0
 * Creates, holds and ends automatic regions. The functions that notify watchers or begin to watch
 * memory are called after the table's lock was released. */
#include "automatic.h"

#include "accelerators.h"
#include "region_ends.h"
#include "region_waiting.h"

#include <sys/resource.h>
#include <unistd.h>

/* An attempt to watch a buffer takes time. So after a failed attempt, the next REFUSED_CALLS calls
 * with this buffer make no attempt. REFUSED is the number of such buffers that are stored. */
enum { REFUSED = 64, REFUSED_CALLS = 100 };

_Static_assert(TABLE_AUTOMATIC >= 2 * AUTOMATIC_MOST,
               "ended regions keep their slots until they are released");

/* A buffer that could not be watched. */
typedef struct refusal {
    const char *base;
    size_t bytes;
    unsigned calls; /* the number of calls that will make no attempt */
} refusal;

/* Guarded by region_table.lock. */
static struct {
    size_t most;              /* set by tests; 0: the default */
    uint64_t clock;           /* counts uses, so that regions can be ordered by their last use */
    refusal refused[REFUSED]; /* hashed by address, see refusal_of() */
} automatic;

static _Atomic bool forbidden; /* automatic_forbid() was called */

/* ---- Ends ------------------------------------------------------------------------- */

/* Ends the automatic regions that no call uses. The loop runs backwards because a region that ends
 * leaves the list. @return true if a region has ended. */
static bool end_idle(void)
{
    bool ended = false;
    for (uint32_t i = region_table.count; i-- > 0;) {
        region_slot *s = table_at(i);
        if (table_is_automatic(s) && s->users == 0)
            ended |= automatic_end(s);
    }
    return ended;
}

bool automatic_drop_idle(void)
{
    pthread_mutex_lock(&region_table.lock);
    const bool dropped = end_idle();
    pthread_mutex_unlock(&region_table.lock);
    automatic_notify();
    return dropped;
}

/* ---- Limits ----------------------------------------------------------------------- */

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

/* @return the least recently used automatic region that no call uses; NULL if there is none. */
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

/* Ends regions until a new one of @p bytes fits into the limits. @return false if it cannot fit. */
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

/* Ends the automatic regions that overlap the range and that no call uses.
 * @return false if the range overlaps any other region. */
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

/* ---- Creating --------------------------------------------------------------------- */

/* @return the entry for a buffer that begins at @p base; another buffer may occupy it. */
static refusal *refusal_of(const char *base)
{
    return &automatic.refused[((uintptr_t)base >> 12) % REFUSED];
}

/* Adds a call that uses the region. @return a reference to @p ptr in it. */
static uint64_t use(region_slot *s, const char *ptr)
{
    s->users++;
    s->used_at = ++automatic.clock;
    return table_ref(s, ptr);
}

/* Adds a new region to the list, and uses it. While the lock was released, another thread may have
 * registered an overlapping region; then the new one is dropped. @param watched  false if its
 * memory cannot be watched. @return its reference; 0 if it was not listed. */
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

/* Creates a region for a buffer, and uses it. @return its reference; 0 if that is not possible. */
static uint64_t make(const char *base, size_t bytes)
{
    pthread_mutex_lock(&region_table.lock);
    refusal *r = refusal_of(base);
    const bool was_refused = r->base == base && r->bytes == bytes && r->calls > 0;
    if (was_refused)
        r->calls--;
    const bool allowed = !was_refused && clear_overlaps(base, bytes) && make_room(bytes);
    region_slot *s = allowed ? table_take(true) : NULL;
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

/* Holds an existing automatic region of the host's memory, after it has ended those whose mapping
 * has changed. (Each call checks the regions of accelerators itself.)
 * @return its reference; 0 if there is none. */
static uint64_t hold_kept(const char *ptr, size_t bytes)
{
    if (watched_has_news())
        for (uint32_t i = region_table.count; i-- > 0;) { /* backwards, as in end_idle() */
            region_slot *each = table_at(i);
            if (table_is_automatic(each) && each->kind != REGION_DEVICE &&
                !watched_is_whole(table_number(each)))
                (void)automatic_end(each);
        }
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

/* Ends the automatic regions of accelerators that overlap the range. Their allocations have been
 * freed, since the range now belongs to another allocation or to the host. */
static void end_devices(const char *base, size_t bytes)
{
    uint32_t place = table_first_near(base, bytes);
    while (place < region_table.count && table_overlaps(table_at(place), base, bytes)) {
        region_slot *s = table_at(place);
        place += s->kind != REGION_DEVICE || !table_is_automatic(s) || !automatic_end(s);
    }
}

/* Makes an allocation of an accelerator a region, unless it is one already. If the table is full,
 * there is no region, and network adapters cannot access the memory. */
static void keep_device(const accelerator *by, const accelerator_allocation *a)
{
    region_slot *s = table_overlap(a->base, a->bytes);
    if (s != NULL && table_is_automatic(s) && s->kind == REGION_DEVICE && !s->ended &&
        s->accelerator == by && s->base == a->base && s->bytes == a->bytes &&
        s->allocation == a->id) {
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

ring_status automatic_device(const void *at, size_t bytes, const accelerator **by, bool *whole)
{
    region r;
    accelerator_allocation a;
    const bool registered = region_find(region_ref(at, 1), &r) && !r.automatic;
    if (registered || !accelerators_are_there()) {
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
        log_info("unregistered memory is copied, not accessed in place: %s", why);
}

void automatic_enter(void)
{
    pthread_mutex_lock(&region_table.lock);
    region_table.communicators++;
    pthread_mutex_unlock(&region_table.lock);
}

void automatic_leave(void)
{
    pthread_mutex_lock(&region_table.lock);
    const bool last = --region_table.communicators == 0;
    for (uint32_t i = region_table.count; last && i-- > 0;)
        if (table_is_automatic(table_at(i)))
            (void)automatic_end(table_at(i)); /* a region in use ends with its last call */
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
