/* SPDX-License-Identifier: Apache-2.0
 *
 * registrations: registers memory with adapters when a link first refers to it. It registers whole
 * regions (regions.h) and whole allocations of the heap, once per process and device. A
 * registration ends with its memory. Other memory is never registered, because nothing reports when
 * it is freed; its bytes are sent as payload.
 */
#ifndef RING_REGISTRATIONS_H
#define RING_REGISTRATIONS_H

#include "adapter.h"

typedef struct registration {
    uint16_t region; /* id of the region that contains the memory */
    uint64_t offset; /* of `base` in the region, as in a reference */
    char *base;
    size_t bytes;
    const struct accelerator *of; /* the accelerator that owns the memory; NULL: host memory */
    uint32_t local[ADAPTER_MOST_DEVICES], remote[ADAPTER_MOST_DEVICES]; /* keys by device */
} registration;

/** The needs of the link for which memory is registered. */
typedef struct registration_user {
    uint32_t devices;      /* bits of adapter_device.index: devices that need keys */
    int first;             /* index of the device in use, which must be near the accelerator; the
                              other devices are for failover */
    bool relaxed;          /* new registrations allow writes to arrive in any order */
    pci_distance farthest; /* largest allowed distance from an accelerator */
} registration_user;

/** Finds or makes the registration of @p bytes at @p ptr. If an adapter has no room, drops idle
 *  automatic regions and retries once.
 *  @param[in,out] out, seen  the results of the caller's last call, or zero. If they still apply,
 *                            the call takes no lock.
 *  @return false if the memory is in no region, its accelerator is too far away, or an adapter
 *          refused it, which was logged. */
bool registration_find(const void *ptr, size_t bytes, const registration_user *by,
                       registration *out, uint64_t *seen);

/** Registers a buffer of the link itself. @return NULL with errno set on failure. */
struct ibv_mr *registration_of_link(const adapter_device *device, void *base, size_t bytes);

#endif
