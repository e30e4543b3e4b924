/* SPDX-License-Identifier: Apache-2.0
 *
 * region_table: stores the regions of the process, for regions.c and automatic.c. The table has a
 * fixed size, so no allocation can fail, and its unused pages are not committed. A region's id is
 * its slot; a list of slots that is sorted by address finds regions. Users' regions and automatic
 * regions have separate slots.
 *
 * The caller must hold region_table.lock in all functions.
 */
#ifndef RING_REGION_TABLE_H
#define RING_REGION_TABLE_H

#include "automatic.h"
#include "regions.h"
#include "watched.h"

#include <stdatomic.h>

enum {
    TABLE_USERS = 16384,
    TABLE_AUTOMATIC = WATCHED_MOST,
    TABLE_SLOTS = TABLE_USERS + TABLE_AUTOMATIC,
    FIRST_ID = REGION_HEAP_ID + 1
};

typedef struct region_slot {
    char *base;
    size_t bytes; /* 0 if the slot is free */
    region_kind kind;
    const struct accelerator *accelerator;
    uint32_t users;      /* calls that hold it                                             */
    unsigned generation; /* of the process that registered it, see fork_generation()       */
    bool ended;          /* automatic: no further call may use it, but a call still does   */
    bool waits;          /* a user's region that is not listed until automatic ones under it
                            have ended                                                     */
    uint64_t used_at;    /* automatic: the time of the last use                            */
    uint64_t allocation; /* automatic, of an accelerator: the accelerator's id of the memory */
} region_slot;

/* Free slots, in the order in which they are used: slots that were never used, then a queue of
 * freed ones, so that an id is not reused soon. */
typedef struct place_queue {
    uint32_t fresh, first, count;
} place_queue;

extern struct region_table {
    pthread_mutex_t lock;
    _Atomic uint32_t count;   /* regions in `order`; changes under the lock, as the next two */
    _Atomic uint32_t devices; /* regions in `order` that are of accelerators                 */
    _Atomic uint64_t ended;   /* regions that have left the list                             */
    place_queue free_users, free_automatic;
    uint32_t waiting, leaving; /* lengths of waiting_at and leaving_at        */
    unsigned communicators;    /* communicators that use automatic regions    */
    automatic_counts automatic;
    uint16_t order[TABLE_SLOTS];
    uint16_t freed_users[TABLE_USERS], freed_automatic[TABLE_AUTOMATIC];
    uint16_t waiting_at[TABLE_USERS];     /* users' regions that are not listed yet */
    uint16_t leaving_at[TABLE_AUTOMATIC]; /* ended automatic regions whose end the watchers do not
                                             know yet */
    region_slot slots[TABLE_SLOTS];
} region_table;

/** @return the number of listed regions that begin at or before @p at. */
uint32_t table_places_until(const char *at);
/** @return the listed region at a place in the order of addresses. */
region_slot *table_at(uint32_t place);
/** @return the place of the first listed region that overlaps the range; if none does, the place of
 *  the next region after it, or `count`. */
uint32_t table_first_near(const char *base, size_t bytes);
/** @return the first listed region that overlaps the range; NULL if none does. */
region_slot *table_overlap(const char *base, size_t bytes);
bool table_overlaps(const region_slot *s, const char *base, size_t bytes);
/** @return the listed region that contains the whole range; NULL if none does. */
region_slot *table_around(const char *ptr, size_t bytes);
/** @return the slot of a reference; NULL if this process has no such region. */
region_slot *table_of(uint64_t ref);
uint64_t table_ref(const region_slot *s, const char *ptr);
bool table_is_automatic(const region_slot *s);
/** @return the number of an automatic region, for watched.h. */
unsigned table_number(const region_slot *s);

/** @return the slot whose id has been free for longest; NULL if all are in use. */
region_slot *table_take(bool automatic);
void table_give_back(region_slot *s);
void table_list(region_slot *s);
void table_unlist(region_slot *s);

#endif
