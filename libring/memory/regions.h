/* SPDX-License-Identifier: Apache-2.0
 *
 * regions: the memory of this process that peers may touch. The heap behind ring_mem_alloc() is
 * one, the others are registered. A reference is (region, offset) in 64 bits, so that adding bytes
 * moves it. The user of a reference checks it against the bounds of its region.
 *
 * Regions do not overlap, and a buffer lies in one of them or in none: so memory has one reference,
 * and a transport keeps one key for it. Forked children start without any but their own heap.
 */
#ifndef RING_REGIONS_H
#define RING_REGIONS_H

#include "base.h"

struct accelerator;

typedef enum region_kind {
    REGION_PLAIN,  /* any memory: put to and got from where a transport can, else carried */
    REGION_SHARED, /* the heap: peers of the host map it */
    REGION_DEVICE  /* memory of an accelerator: no host load or store */
} region_kind;

/* Of a reference: bits of its offset, and the heap's id. */
enum { REGION_OFFSET_BITS = 48, REGION_HEAP_ID = 1 };

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
    uint16_t id; /* after its end not given again before all others were */
    region_kind kind;
    bool automatic; /* made by libring, see automatic.h */
    char *base;
    size_t bytes;
    const struct accelerator *accelerator; /* of REGION_DEVICE */
} region;

/** Thread-safe, as everything here.
 *  @return RING_OK, RING_ERR_ARGUMENT or RING_ERR_MEMORY as ring_mem_register() says. */
ring_status region_add(void *base, size_t bytes, region_kind kind);
/** The same for memory that only @p by, which outlives it, may touch. */
ring_status region_add_device(void *base, size_t bytes, const struct accelerator *by);
/** @return RING_OK, RING_ERR_ARGUMENT or RING_ERR_USAGE as ring_mem_deregister() says. */
ring_status region_remove(void *base);

/** Reference to [ptr, ptr+bytes); 0 if that does not lie within one region. Good for as long as
 *  the region is there: see region_hold(). O(log regions); the heap, and memory while nothing is
 *  registered, take no lock. */
uint64_t region_ref(const void *ptr, size_t bytes);

/** @return false: only the heap is a region, so no memory need be held. One load. */
bool regions_are_registered(void);
/** @return a number that changes when any region but the heap ends: then an address may lie in
 *  another region than before. One load. */
uint64_t regions_ended(void);
/** @return true if memory of accelerators is among them, or may become one of them, see
 *  automatic_device(). Two loads. */
bool regions_have_devices(void);
/** @return the accelerator of all registered accelerator memory; NULL: none, or several.
 *  O(regions). */
const struct accelerator *regions_accelerator(void);
/** As region_ref(), for a call that uses the memory: the region stays until region_release(). The
 *  heap stays anyway. Automatic ones of the host's memory are held by automatic_hold() alone. */
uint64_t region_hold(const void *ptr, size_t bytes);
/** @param ref  from region_hold(); 0 is allowed. */
void region_release(uint64_t ref);

/** The region of a reference, at any offset. @return false if there is none. */
bool region_find(uint64_t ref, region *out);
/** The accelerator that can access memory at the reference; NULL: the host. */
const struct accelerator *region_accelerator(uint64_t ref);
/** @return the address of @p bytes at @p ref in this process, NULL if they are not all inside. */
void *region_address(uint64_t ref, size_t bytes);

/** For owners of data about memory, such as an adapter's key. */
typedef struct region_watcher {
    /* A whole region, or an allocation of the heap. No call uses it any more; region_remove() and
     * heap_free() wait for this. */
    void (*gone)(uint16_t id, uint64_t offset, size_t bytes);
    struct region_watcher *next;
} region_watcher;
/** @param watcher  stays for good; once. */
void region_watch(region_watcher *watcher);

#endif
