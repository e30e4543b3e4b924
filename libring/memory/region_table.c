/* SPDX-License-Identifier: Apache-2.0
 * Implements the table of regions. A binary search in a sorted list finds a region by its address;
 * its id is the index of its slot. */
#include "region_table.h"

#include <string.h>

struct region_table region_table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- By address ------------------------------------------------------------------- */

region_slot *table_at(uint32_t place)
{
    return &region_table.slots[region_table.order[place]];
}

uint32_t table_places_until(const char *at)
{
    uint32_t low = 0, high = region_table.count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if ((uintptr_t)table_at(middle)->base <= (uintptr_t)at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool table_overlaps(const region_slot *s, const char *base, size_t bytes)
{
    return (size_t)(s->base - base) < bytes || (size_t)(base - s->base) < s->bytes;
}

uint32_t table_first_near(const char *base, size_t bytes)
{
    const uint32_t place = table_places_until(base);
    return place > 0 && table_overlaps(table_at(place - 1), base, bytes) ? place - 1 : place;
}

region_slot *table_overlap(const char *base, size_t bytes)
{
    const uint32_t place = table_first_near(base, bytes);
    region_slot *s = place < region_table.count ? table_at(place) : NULL;
    return s != NULL && table_overlaps(s, base, bytes) ? s : NULL;
}

region_slot *table_around(const char *ptr, size_t bytes)
{
    const uint32_t place = table_places_until(ptr);
    region_slot *s = place > 0 ? table_at(place - 1) : NULL;
    if (s == NULL || bytes > s->bytes || (size_t)(ptr - s->base) > s->bytes - bytes)
        return NULL;
    return s;
}

void table_list(region_slot *s)
{
    uint16_t *order = region_table.order;
    const uint32_t count = region_table.count, place = table_places_until(s->base);
    memmove(&order[place + 1], &order[place], (count - place) * sizeof *order);
    order[place] = (uint16_t)(s - region_table.slots);
    region_table.count = count + 1;
    region_table.devices += s->kind == REGION_DEVICE;
}

void table_unlist(region_slot *s)
{
    uint16_t *order = region_table.order;
    const uint32_t count = region_table.count, next = table_places_until(s->base);
    memmove(&order[next - 1], &order[next], (count - next) * sizeof *order);
    region_table.count = count - 1;
    atomic_fetch_add_explicit(&region_table.ended, 1, memory_order_release);
    region_table.devices -= s->kind == REGION_DEVICE;
}

/* ---- By id ------------------------------------------------------------------------ */

uint64_t table_ref(const region_slot *s, const char *ptr)
{
    return region_ref_to((uint16_t)(FIRST_ID + (s - region_table.slots)),
                         (uint64_t)(ptr - s->base));
}

region_slot *table_of(uint64_t ref)
{
    const uint16_t id = region_id_of(ref);
    if (id < FIRST_ID || id >= FIRST_ID + TABLE_SLOTS)
        return NULL;
    region_slot *s = &region_table.slots[id - FIRST_ID];
    return s->bytes > 0 && s->generation == fork_generation() ? s : NULL;
}

bool table_is_automatic(const region_slot *s)
{
    return s - region_table.slots >= TABLE_USERS;
}

unsigned table_number(const region_slot *s)
{
    return (unsigned)(s - region_table.slots) - TABLE_USERS;
}

/* ---- Free slots ------------------------------------------------------------------- */

/* Takes a free slot of one kind. @return its index among the slots of the kind; -1 if there is
 * none. */
static int pop(place_queue *q, const uint16_t *freed, uint32_t most)
{
    if (q->fresh < most)
        return (int)q->fresh++;
    if (q->count == 0)
        return -1;
    const int place = freed[q->first];
    q->first = (q->first + 1) % most;
    q->count--;
    return place;
}

static void push(place_queue *q, uint16_t *freed, uint32_t most, uint32_t place)
{
    freed[(q->first + q->count++) % most] = (uint16_t)place;
}

region_slot *table_take(bool automatic)
{
    struct region_table *t = &region_table;
    const int place = automatic ? pop(&t->free_automatic, t->freed_automatic, TABLE_AUTOMATIC)
                                : pop(&t->free_users, t->freed_users, TABLE_USERS);
    if (place < 0)
        return NULL;
    region_slot *s = &t->slots[place + (automatic ? TABLE_USERS : 0)];
    *s = (region_slot){.generation = fork_generation()};
    return s;
}

void table_give_back(region_slot *s)
{
    struct region_table *t = &region_table;
    s->bytes = 0;
    if (table_is_automatic(s))
        push(&t->free_automatic, t->freed_automatic, TABLE_AUTOMATIC, table_number(s));
    else
        push(&t->free_users, t->freed_users, TABLE_USERS, (uint32_t)(s - t->slots));
}
