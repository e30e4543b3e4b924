/* SPDX-License-Identifier: Apache-2.0
 * Registers accelerator memory with adapters, through a dma-buf or by its address. */
#include "device_memory.h"

#include <errno.h>

pci_distance device_memory_distance(const adapter_device *device, const accelerator *of)
{
    return of->place != NULL ? pci_distance_between(of->place(of), &device->place) : PCI_LOC;
}

/* Tries to register an invalid descriptor. EOPNOTSUPP means that the driver does not support
 * dma-bufs; any other error means that it does. */
static bool takes_dmabuf(adapter_device *device)
{
    const ibverbs *api = ibverbs_load();
    if (api->reg_dmabuf_mr == NULL)
        return false;
    if (device->dmabuf == DMABUF_UNKNOWN) {
        errno = 0;
        (void)api->reg_dmabuf_mr(device->pd, 0, 0, 0, -1, 0);
        const bool no = errno == EOPNOTSUPP || errno == EPROTONOSUPPORT;
        device->dmabuf = no ? DMABUF_NO : DMABUF_YES;
        log_debug("verbs: %s %s dma-bufs (%m)", device->name, no ? "rejects" : "accepts");
    }
    return device->dmabuf == DMABUF_YES;
}

static void say_why_not(adapter_device *device, const char *why)
{
    log_at(device->said ? LOG_DEBUG : LOG_WARN,
           "verbs: %s cannot access accelerator memory, so data is copied through host memory: %s; "
           "see 'ringinfo doctor'",
           device->name, why);
    device->said = true;
}

static struct ibv_mr *refused(adapter_device *device, const char *call)
{
    char why[128];
    (void)text_format(why, sizeof why, "%s: %m", call);
    say_why_not(device, why);
    return NULL;
}

struct ibv_mr *device_memory_register(adapter_device *device, const accelerator_share *share,
                                      void *base, size_t bytes, unsigned access)
{
    const ibverbs *api = ibverbs_load();
    struct ibv_mr *mr = NULL;
    const bool by_dmabuf = share->dmabuf >= 0 && takes_dmabuf(device);
    if (by_dmabuf)
        mr = api->reg_dmabuf_mr(device->pd, share->offset, bytes, (uintptr_t)base, share->dmabuf,
                                (int)access);
    if (mr != NULL)
        return mr;
    if (share->by_address) {
        mr = adapter_register(device, base, bytes, access);
        return mr != NULL ? mr : refused(device, "ibv_reg_mr");
    }
    if (by_dmabuf)
        return refused(device, "ibv_reg_dmabuf_mr");
    say_why_not(device,
                share->dmabuf < 0
                    ? "the accelerator gave no dma-buf, and nvidia-peermem is not loaded"
                : api->reg_dmabuf_mr == NULL
                    ? "libibverbs is too old for dma-bufs, and nvidia-peermem is not loaded"
                    : "the adapter's driver rejects dma-bufs, and nvidia-peermem is not loaded");
    return NULL;
}
