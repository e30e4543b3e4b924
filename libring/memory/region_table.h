/* SPDX-License-Identifier: Apache-2.0
 *
 * region_table: stores the regions of the process, for regions.c and automatic.c. The table has a
 * fixed size, so no allocation can fail; the kernel commits no memory for its unused pages. A
 * region's id follows from its slot. A list of slots, sorted by address, finds the region of an
 * address. Users' regions, which ring_mem_register() has registered, and automatic regions have
 * separate slots.
 *
 * The caller of any function must hold region_table.lock.
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
    uint32_t users;      /* calls that hold it                                              */
    unsigned generation; /* fork_generation() of the process that registered it             */
    bool ended;          /* automatic: no further call may use it, but some still do        */
    bool waits;          /* of a user: it is not listed yet, because automatic regions that
                            overlap it have not ended                                       */
    uint64_t used_at;    /* automatic: the last use, in a count of all uses                 */
    uint64_t allocation; /* automatic, of an accelerator: its accelerator_allocation.id     */
} region_slot;

/* The free slots of one kind. New regions take slots that were never used, and after that the slot
 * that was freed first, so that an id is not reused soon. */
typedef struct place_queue {
    uint32_t fresh;        /* the number of slots that were used at least once */
    uint32_t first, count; /* the queue of freed slots in its ring: first place, and length */
} place_queue;

extern struct region_table {
    pthread_mutex_t lock;
    /* The lock guards all changes of these atomics, which are read without it. */
    _Atomic uint32_t count;   /* regions in `order`                                          */
    _Atomic uint32_t devices; /* regions in `order` that are memory of accelerators          */
    _Atomic uint64_t ended;   /* how many regions have left the list so far                  */
    place_queue free_users, free_automatic;
    uint32_t waiting, leaving; /* lengths of waiting_at and leaving_at        */
    unsigned communicators;    /* communicators that use automatic regions    */
    automatic_counts automatic;
    uint16_t order[TABLE_SLOTS]; /* the list: slots sorted by address */
    uint16_t freed_users[TABLE_USERS], freed_automatic[TABLE_AUTOMATIC];
    uint16_t waiting_at[TABLE_USERS];     /* users' regions that are not listed yet */
    uint16_t leaving_at[TABLE_AUTOMATIC]; /* ended automatic regions of whose end the watchers have
                                             not been notified yet */
    region_slot slots[TABLE_SLOTS];
} region_table;

/** @return the number of listed regions that begin at or before @p at. */
uint32_t table_places_until(const char *at);
/** @return the listed region at @p place in the order of addresses. */
region_slot *table_at(uint32_t place);
/** @return the place of the first listed region that overlaps the range; if there is none, the
 * place of the next region after the range, or `count`. */
uint32_t table_first_near(const char *base, size_t bytes);
/** @return the first listed region that overlaps the range; NULL if there is none. */
region_slot *table_overlap(const char *base, size_t bytes);
/** @return true if the region overlaps the range. */
bool table_overlaps(const region_slot *s, const char *base, size_t bytes);
/** @return the listed region that contains the whole range; NULL if there is none. */
region_slot *table_around(const char *ptr, size_t bytes);
/** @return the slot of a reference; NULL if this process has no such region. */
region_slot *table_of(uint64_t ref);
/** @return a reference to the address @p ptr in the region. */
uint64_t table_ref(const region_slot *s, const char *ptr);
bool table_is_automatic(const region_slot *s);
/** @return the number of an automatic region, by which watched.h identifies it. */
unsigned table_number(const region_slot *s);

/** @return a free slot for a user's or an automatic region; NULL if all are in use. */
region_slot *table_take(bool automatic);
/** Frees a slot that is not in the list. */
void table_give_back(region_slot *s);
/** Add a region to the list, and remove it. */
void table_list(region_slot *s);
void table_unlist(region_slot *s);

#endif
