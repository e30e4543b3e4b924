/* SPDX-License-Identifier: Apache-2.0
 *
 * device_memory: registers accelerator memory with an adapter, which then reads and writes it
 * directly (GPUDirect). It uses a dma-buf if the adapter's driver supports them. Otherwise it uses
 * the memory's address, if the accelerator reports that adapters can resolve it (nvidia-peermem).
 * The caller serialises the calls.
 */
#ifndef RING_DEVICE_MEMORY_H
#define RING_DEVICE_MEMORY_H

#include "accelerator.h"
#include "adapter.h"

/** @return the distance between adapter and accelerator; PCI_LOC if the accelerator's place is
 *  unknown. */
pci_distance device_memory_distance(const adapter_device *device, const accelerator *of);

/** Registers @p bytes at @p base.
 *  @param share   the result of accelerator.share() for these bytes; borrowed.
 *  @param access  IBV_ACCESS_*.
 *  @return NULL if the memory can be shared in neither way, or the adapter refused it. Logs the
 *  reason, the first time for each device as a warning. */
struct ibv_mr *device_memory_register(adapter_device *device, const accelerator_share *share,
                                      void *base, size_t bytes, unsigned access);

#endif
