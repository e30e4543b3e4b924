/* SPDX-License-Identifier: Apache-2.0
 *
 * device_memory: memory of accelerators that an adapter reads and writes itself (GPUDirect): by
 * dma-buf where the adapter takes such, else by its addresses where the accelerator says that
 * adapters' drivers know them. Calls are serialised by the caller.
 */
#ifndef RING_DEVICE_MEMORY_H
#define RING_DEVICE_MEMORY_H

#include "accelerator.h"
#include "adapter.h"

/** The distance between both; PCI_LOC for an accelerator without a place. */
pci_distance device_memory_distance(const adapter_device *device, const accelerator *of);

/** @param share   of @p bytes at @p base, from accelerator.share(); stays the caller's.
 *  @param access  IBV_ACCESS_*.
 *  @return NULL: no dma-buf nor peer memory, or the adapter refused it (logged, as a warning once
 *  a device). */
struct ibv_mr *device_memory_register(adapter_device *device, const accelerator_share *share,
                                      void *base, size_t bytes, unsigned access);

#endif
