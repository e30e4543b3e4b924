/* SPDX-License-Identifier: Apache-2.0
 *
 * registrations: memory registered with adapters: regions, registered by users (also of
 * accelerators) or automatic, and allocations of the heap, each as a whole and once per process and
 * device, when a link first refers to it. A registration ends with its memory (regions.h). Other
 * memory is never registered, as its end is not reported: its bytes are sent as payload.
 */
#ifndef RING_REGISTRATIONS_H
#define RING_REGISTRATIONS_H

#include "adapter.h"

typedef struct registration {
    uint16_t region;
    uint64_t offset; /* of `base` in the region, as in a reference */
    char *base;
    size_t bytes;
    const struct accelerator *of; /* the accelerator that owns the memory, NULL: the host's */
    uint32_t local[ADAPTER_MOST_DEVICES], remote[ADAPTER_MOST_DEVICES]; /* keys by device */
} registration;

/** The link that needs a registration. */
typedef struct registration_user {
    uint32_t devices;      /* bits of adapter_device.index: devices that need keys */
    int first;             /* index of the device in use, which must be near to the accelerator; the
                              others are for failover */
    bool relaxed;          /* writes may arrive in any order, if it is not registered yet */
    pci_distance farthest; /* distance allowed from an accelerator */
} registration_user;

/** @param[in,out] out, seen  the caller's last result, or zero: a repeat takes no lock.
 *  @return false: no such memory, its accelerator is too far away, or an adapter refused it (logged
 *  once). Before a refusal, idle automatic regions are dropped to make room. */
bool registration_find(const void *ptr, size_t bytes, const registration_user *by,
                       registration *out, uint64_t *seen);

/** Registers a buffer of a link itself. @return NULL with errno set. */
struct ibv_mr *registration_of_link(const adapter_device *device, void *base, size_t bytes);

#endif
