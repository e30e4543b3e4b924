/* SPDX-License-Identifier: Apache-2.0
 *
 * region_table: the table that regions.c and automatic.c share. It has a fixed size: no allocation
 * can fail, and unused pages are not even committed. An id is a place in it; a sorted list of
 * places finds addresses. Users' regions and automatic ones have places of their own.
 *
 * The caller holds region_table.lock throughout.
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
    size_t bytes; /* 0: free */
    region_kind kind;
    const struct accelerator *accelerator;
    uint32_t users;      /* calls that hold it */
    unsigned generation; /* of the process that registered it, see fork_generation() */
    bool ended;          /* automatic, and still used: by no further call */
    bool waits;          /* a user's, over automatic ones that still end: not listed before */
    uint64_t used_at;    /* automatic: time of the last use */
    uint64_t allocation; /* automatic, of an accelerator: its id there */
} region_slot;

/* Free places, longest free first: those that were never used, then a ring. */
typedef struct place_queue {
    uint32_t fresh, first, count;
} place_queue;

extern struct region_table {
    pthread_mutex_t lock;
    _Atomic uint32_t count;   /* listed in `order`; changes under the lock, as the next */
    _Atomic uint32_t devices; /* of them, those of accelerators */
    _Atomic uint64_t ended;   /* number of regions that have left the list */
    place_queue free_users, free_automatic;
    uint32_t waiting, leaving; /* how many of these */
    unsigned communicators;    /* that want automatic regions */
    automatic_counts automatic;
    uint16_t order[TABLE_SLOTS];
    uint16_t freed_users[TABLE_USERS], freed_automatic[TABLE_AUTOMATIC];
    uint16_t waiting_at[TABLE_USERS];     /* users' regions that are not listed yet */
    uint16_t leaving_at[TABLE_AUTOMATIC]; /* automatic ones of whose end the watchers are still to
                                             be notified */
    region_slot slots[TABLE_SLOTS];
} region_table;

/** The number of listed regions that begin at @p at or before. */
uint32_t table_places_until(const char *at);
/** A listed region, by address. */
region_slot *table_at(uint32_t place);
/** The place of the first listed region that has bytes of these; else `count`, or that of a region
 *  behind them. */
uint32_t table_first_near(const char *base, size_t bytes);
/** A listed region that has bytes of these; NULL: none. */
region_slot *table_overlap(const char *base, size_t bytes);
bool table_overlaps(const region_slot *s, const char *base, size_t bytes);
/** The listed region that all these bytes lie in; NULL: none. */
region_slot *table_around(const char *ptr, size_t bytes);
/** The slot of a reference; NULL: none of this process. */
region_slot *table_of(uint64_t ref);
uint64_t table_ref(const region_slot *s, const char *ptr);
bool table_is_automatic(const region_slot *s);
/** Its number among the automatic ones. */
unsigned table_number(const region_slot *s);

/** @return a free place, with the id that was free for longest; NULL: there is none. */
region_slot *table_take(bool automatic);
void table_give_back(region_slot *s);
void table_list(region_slot *s);
void table_unlist(region_slot *s);

#endif
