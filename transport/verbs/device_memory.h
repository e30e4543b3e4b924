/* SPDX-License-Identifier: Apache-2.0
 *
 * device_memory: registers accelerator memory that an adapter reads and writes itself (GPUDirect).
 * It uses a dma-buf if the adapter accepts them, otherwise the memory's addresses if the
 * accelerator reports that adapters' drivers know them. The caller serialises the calls.
 */
#ifndef RING_DEVICE_MEMORY_H
#define RING_DEVICE_MEMORY_H

#include "accelerator.h"
#include "adapter.h"

/** @return the distance between the two; PCI_LOC if the accelerator's place is unknown. */
pci_distance device_memory_distance(const adapter_device *device, const accelerator *of);

/** @param share   from accelerator.share() for the @p bytes at @p base; remains the caller's.
 *  @param access  IBV_ACCESS_*.
 *  @return NULL if there is neither dma-buf nor peer memory, or the adapter refused it. The reason
 *  is logged, once per device as a warning. */
struct ibv_mr *device_memory_register(adapter_device *device, const accelerator_share *share,
                                      void *base, size_t bytes, unsigned access);

#endif
