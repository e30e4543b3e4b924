/* SPDX-License-Identifier: Apache-2.0
 * Ends automatic regions, and notifies the watchers of all ended memory. A region leaves the list
 * while the lock is held, and the watchers are notified after the lock was released. Only then is
 * the region's slot freed. */
#include "region_ends.h"

#include "heap.h"
#include "region_waiting.h"

/* ---- Ends ------------------------------------------------------------------------------------ */

size_t automatic_bytes(const region_slot *s)
{
    return s->kind == REGION_DEVICE ? 0 : s->bytes;
}

/* Removes a region from the list, and stores it for automatic_notify(). */
static void unlist_ended(region_slot *s)
{
    table_unlist(s);
    watched_end(table_number(s));
    region_table.automatic.regions--;
    region_table.automatic.bytes -= automatic_bytes(s);
    region_table.automatic.ended++;
    region_table.leaving_at[region_table.leaving++] = (uint16_t)(s - region_table.slots);
    regions_list_waiting();
}

bool automatic_end(region_slot *s)
{
    s->ended = true;
    if (s->users > 0)
        return false;
    unlist_ended(s);
    return true;
}

bool automatic_release(region_slot *s)
{
    return --s->users == 0 && s->ended && automatic_end(s);
}

/* ---- Notification ---------------------------------------------------------------------------- */

static region_watcher *_Atomic watchers;

void regions_notify_watchers(uint16_t id, uint64_t offset, size_t bytes)
{
    for (const region_watcher *w = atomic_load(&watchers); w != NULL; w = w->next)
        w->gone(id, offset, bytes);
}

static void heap_is_freeing(size_t offset, size_t bytes)
{
    regions_notify_watchers(REGION_HEAP_ID, offset, bytes);
}

void region_watch(region_watcher *watcher)
{
    heap_watch(heap_is_freeing);
    watcher->next = atomic_load(&watchers);
    while (!atomic_compare_exchange_weak(&watchers, &watcher->next, watcher))
        continue;
}

/* Held while watchers are notified. So after a thread has acquired it and found no ended region,
 * all watchers have been notified of all ends. */
static pthread_mutex_t notifying = PTHREAD_MUTEX_INITIALIZER;

/* Takes an ended region, and frees its slot. @return false if there is none. */
static bool next_ended(uint64_t *ref, size_t *bytes)
{
    pthread_mutex_lock(&region_table.lock);
    const bool some = region_table.leaving > 0;
    if (some) {
        region_slot *s = &region_table.slots[region_table.leaving_at[--region_table.leaving]];
        *ref = table_ref(s, s->base);
        *bytes = s->bytes;
        table_give_back(s);
    }
    pthread_mutex_unlock(&region_table.lock);
    return some;
}

void automatic_notify(void)
{
    uint64_t ref;
    size_t bytes;
    pthread_mutex_lock(&notifying);
    while (next_ended(&ref, &bytes))
        regions_notify_watchers(region_id_of(ref), 0, bytes);
    pthread_mutex_unlock(&notifying);
}

void region_ends_forget(void)
{
    pthread_mutex_init(&notifying, NULL);
}
