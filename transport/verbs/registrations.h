/* SPDX-License-Identifier: Apache-2.0
 *
 * registrations: memory that adapters may touch: regions, registered by users (also of
 * accelerators) or automatic, and allocations of the heap, each as a whole and once a process and
 * device, when a link first refers to it. They end with the memory (regions.h). Other memory is
 * never registered: nobody says when it goes, so what lies there is carried.
 */
#ifndef RING_REGISTRATIONS_H
#define RING_REGISTRATIONS_H

#include "adapter.h"

typedef struct registration {
    uint16_t region;
    uint64_t offset; /* of `base` in the region; that of a reference */
    char *base;
    size_t bytes;
    const struct accelerator *of; /* whose memory it is, NULL: the host's */
    uint32_t local[ADAPTER_MOST_DEVICES], remote[ADAPTER_MOST_DEVICES]; /* keys a device */
} registration;

/** For whom memory is registered. */
typedef struct registration_user {
    uint32_t devices;      /* bits of adapter_device.index: those that shall have keys       */
    int first;             /* index of the one in use: it has to be near to an accelerator,
                              the others are for when it fails                               */
    bool relaxed;          /* it may write there in any order, if it is not registered yet   */
    pci_distance farthest; /* from an accelerator                                            */
} registration_user;

/** @param[in,out] out, seen  what the caller found last, or zero: the same again costs no lock.
 *  @return false: it is no such memory, its accelerator is too far away, or an adapter took it not
 *  (which is logged once). Before that, automatic regions make room for others. */
bool registration_find(const void *ptr, size_t bytes, const registration_user *by,
                       registration *out, uint64_t *seen);

/** For memory of a link itself. @return NULL with errno set. */
struct ibv_mr *registration_of_link(const adapter_device *device, void *base, size_t bytes);

#endif
