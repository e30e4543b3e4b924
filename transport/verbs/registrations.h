/* SPDX-License-Identifier: Apache-2.0
 *
 * registrations: memory that adapters may touch: regions that users registered, and allocations of
 * the heap, each as a whole and once a process and device, when a link first refers to it. They end
 * with the memory (regions.h). Other memory is never registered: nobody says when it goes, so what
 * lies there is carried.
 */
#ifndef RING_REGISTRATIONS_H
#define RING_REGISTRATIONS_H

#include "adapter.h"

typedef struct registration {
    uint16_t region;
    uint64_t offset; /* of `base` in the region; that of a reference */
    char *base;
    size_t bytes;
    uint32_t local[ADAPTER_MOST_DEVICES], remote[ADAPTER_MOST_DEVICES]; /* keys a device */
} registration;

/** @param devices  bits of adapter_device.index: those that shall have keys.
 *  @param relaxed  the adapter may write there in any order, if it is not registered yet.
 *  @param[in,out] out, seen  what the caller found last, or zero: the same again costs no lock.
 *  @return false: it is no such memory, or the adapter took it not (which is logged once). */
bool registration_find(const void *ptr, size_t bytes, uint32_t devices, bool relaxed,
                       registration *out, uint64_t *seen);

/** For memory of a link itself. @return NULL with errno set. */
struct ibv_mr *registration_of_link(const adapter_device *device, void *base, size_t bytes);

#endif
