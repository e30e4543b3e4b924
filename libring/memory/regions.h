/* SPDX-License-Identifier: Apache-2.0
 *
 * regions: manages the memory of this process that peers may access. The heap of ring_mem_alloc()
 * is one region; the others are registered. A reference has the id of a region and an offset in 64
 * bits, so a sum of a reference and a number of bytes is a reference, too. A rank that receives a
 * reference must check it against the bounds of its region.
 *
 * Regions do not overlap, so an address has at most one reference, and a transport needs one key
 * for it. A forked child begins without regions except its own heap.
 */
#ifndef RING_REGIONS_H
#define RING_REGIONS_H

#include "base.h"

struct accelerator;

typedef enum region_kind {
    REGION_PLAIN,  /* any memory; some transports can put to it and get from it       */
    REGION_SHARED, /* the heap, which peers of the host map                           */
    REGION_DEVICE  /* memory of an accelerator, which the host must not access        */
} region_kind;

/* The number of bits of the offset in a reference; the id of the heap. */
enum { REGION_OFFSET_BITS = 48, REGION_HEAP_ID = 1 };

/** Compose a reference, and return its parts. */
static inline uint64_t region_ref_to(uint16_t id, uint64_t offset)
{
    return (uint64_t)id << REGION_OFFSET_BITS | offset;
}
static inline uint16_t region_id_of(uint64_t ref)
{
    return (uint16_t)(ref >> REGION_OFFSET_BITS);
}
static inline uint64_t region_offset_of(uint64_t ref)
{
    return ref & ((UINT64_C(1) << REGION_OFFSET_BITS) - 1);
}

typedef struct region {
    uint16_t id; /* the id that has been free for the longest time is reused first */
    region_kind kind;
    bool automatic; /* registered by libring, see automatic.h */
    char *base;
    size_t bytes;
    const struct accelerator *accelerator; /* for REGION_DEVICE */
} region;

/** Registers memory. All functions are thread-safe.
 *  @return RING_OK, RING_ERR_ARGUMENT or RING_ERR_MEMORY, as documented for ring_mem_register(). */
ring_status region_add(void *base, size_t bytes, region_kind kind);
/** Registers memory that only @p by may access, which must outlive the region. */
ring_status region_add_device(void *base, size_t bytes, const struct accelerator *by);
/** @return RING_OK, RING_ERR_ARGUMENT or RING_ERR_USAGE, as documented for ring_mem_deregister().
 */
ring_status region_remove(void *base);

/** @return a reference to [ptr, ptr+bytes); 0 if the range is not within one region. It is valid
 *  while the region exists, see region_hold(). Cost: O(log regions), and no lock for memory of the
 *  heap or while nothing is registered. */
uint64_t region_ref(const void *ptr, size_t bytes);

/** @return false if there is no region except the heap, so that calls need not hold regions. Cost:
 * one load. */
bool regions_are_registered(void);
/** @return a number that changes when a region other than the heap ends. Callers that store the
 * region of an address look it up again then. Cost: one load. */
uint64_t regions_ended(void);
/** @return true if a region is memory of an accelerator, or if memory of one may become a region,
 * see automatic_device(). Cost: two loads. */
bool regions_have_devices(void);
/** @return the accelerator whose memory is registered; NULL if there is none, or several
 * accelerators have registered memory. Cost: O(regions). */
const struct accelerator *regions_accelerator(void);
/** Returns a reference as region_ref() does, and makes sure that the region does not end before
 *  region_release(). The heap never ends. Returns 0 for automatic regions of the host's memory, for
 *  which callers use automatic_hold(). */
uint64_t region_hold(const void *ptr, size_t bytes);
/** Releases a reference of region_hold() or automatic_hold(); 0 does nothing. */
void region_release(uint64_t ref);

/** Finds the region of a reference; the offset is not checked. @return false if there is none. */
bool region_find(uint64_t ref, region *out);
/** @return the accelerator that owns the memory of a reference; NULL if it is the host's memory. */
const struct accelerator *region_accelerator(uint64_t ref);
/** @return the address in this process of the @p bytes at @p ref; NULL if they are not all within
 * the region. */
void *region_address(uint64_t ref, size_t bytes);

/** A callback for code that stores data about memory, such as an adapter's keys, and must drop the
 * data when the memory ends. */
typedef struct region_watcher {
    /** Called when a whole region or an allocation of the heap ends. No call uses the memory any
     *  more, and region_remove() or heap_free() do not return before this function. */
    void (*gone)(uint16_t id, uint64_t offset, size_t bytes);
    struct region_watcher *next;
} region_watcher;
/** Adds a watcher. @param watcher  must stay valid until the process ends, and be added once. */
void region_watch(region_watcher *watcher);

#endif
