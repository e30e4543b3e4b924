/* SPDX-License-Identifier: Apache-2.0
 *
 * regions: manages the memory of this process that peers may access. The heap of ring_mem_alloc()
 * is one region; the others are registered. A reference is a region and an offset in 64 bits, so
 * adding bytes to it moves it. Users of a reference must check it against the bounds of its region.
 *
 * Regions do not overlap, so memory has at most one reference, and a transport needs one key for
 * it. A forked child begins without regions except its own heap.
 */
#ifndef RING_REGIONS_H
#define RING_REGIONS_H

#include "base.h"

struct accelerator;

typedef enum region_kind {
    REGION_PLAIN,  /* any memory: transports that can do so put to it and get from it */
    REGION_SHARED, /* the heap, which peers of the host map                           */
    REGION_DEVICE  /* memory of an accelerator, which the host must not access        */
} region_kind;

/* The bits of an offset in a reference, and the id of the heap. */
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
    uint16_t id; /* an id that became free is reused last */
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

/** @return false if the heap is the only region, so that calls need not hold memory. Cost: one
 *  load. */
bool regions_are_registered(void);
/** @return a number that changes when a region other than the heap ends; then an address may be in
 *  another region than before. Cost: one load. */
uint64_t regions_ended(void);
/** @return true if a region is memory of an accelerator, or may become a region, see
 *  automatic_device(). Cost: two loads. */
bool regions_have_devices(void);
/** @return the accelerator of all registered accelerator memory; NULL if there is none or if there
 *  are several. Cost: O(regions). */
const struct accelerator *regions_accelerator(void);
/** Returns a reference as region_ref() does, for a call that uses the memory: the region exists
 *  until region_release(). The heap always exists. Automatic regions of the host's memory are held
 *  only by automatic_hold(). */
uint64_t region_hold(const void *ptr, size_t bytes);
/** @param ref  from region_hold(); 0 is allowed. */
void region_release(uint64_t ref);

/** @param[out] out  the region of a reference, whatever its offset. @return false if there is none.
 */
bool region_find(uint64_t ref, region *out);
/** @return the accelerator whose memory the reference is to; NULL if the memory is the host's. */
const struct accelerator *region_accelerator(uint64_t ref);
/** @return the address of @p bytes at @p ref in this process; NULL if they are not all in the
 *  region. */
void *region_address(uint64_t ref, size_t bytes);

/** Notifies the owners of data about memory, such as an adapter's keys, of the memory's end. */
typedef struct region_watcher {
    /* The memory is a whole region or an allocation of the heap. No call uses it any more, and
     * region_remove() or heap_free() return after this function. */
    void (*gone)(uint16_t id, uint64_t offset, size_t bytes);
    struct region_watcher *next;
} region_watcher;
/** Adds a watcher. @param watcher  must stay valid until the process ends, and be added once. */
void region_watch(region_watcher *watcher);

#endif
