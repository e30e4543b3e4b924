/* SPDX-License-Identifier: Apache-2.0
 * GPUs, and the way from their memory to the adapters. */
#include "checks.h"

#include <stdio.h>
#include <string.h>

void check_gpus(const facts *f, checking *c)
{
    if (f->pci.gpu_count == 0)
        check_nothing(c, NULL, "no GPU of NVIDIA on the PCI bus");
    for (size_t i = 0; i < f->pci.gpu_count; i++)
        check_found(c, f->pci.gpus[i].address, "NUMA node %d", f->pci.gpus[i].place.numa);
}

void check_driver(const facts *f, checking *c)
{
    const bool there = f->pci.driver[0] != '\0';
    if (f->pci.gpu_count == 0)
        return;
    check_found(c, NULL, "%s", there ? f->pci.driver : "none");
    if (there)
        return;
    check_judge(c, VERDICT_FAIL, "there are GPUs, and no program can use them");
    check_mend(c, "sudo apt install nvidia-driver && sudo modprobe nvidia");
}

/* The open kernel module hands out its memory as dma-buf, and needs no other. */
void check_peer_memory(const facts *f, checking *c)
{
    const bool open = strstr(f->pci.driver, "Open Kernel Module") != NULL;
    if (f->pci.gpu_count == 0 || f->port_count == 0 || f->pci.driver[0] == '\0')
        return;
    check_found(c, NULL, "%s", f->pci.peer_memory ? "nvidia-peermem" : open ? "dma-buf" : "none");
    if (f->pci.peer_memory || open)
        return;
    check_judge(c, VERDICT_WARN,
                "adapters cannot read the memory of GPUs: it goes through the host's memory, at a "
                "fraction of the speed");
    check_mend(c, "sudo modprobe nvidia-peermem && echo nvidia-peermem | sudo tee "
                  "/etc/modules-load.d/nvidia-peermem.conf");
}

/* ---- The bus --------------------------------------------------------------------------------- */

/* Idle GPUs lower their speed, and never their width. */
static void judge_slot(checking *c, const fact_pci *d, bool gpu)
{
    if (d->width <= 0 || d->max_width <= 0)
        return;
    check_found(c, d->address, "x%ld of x%ld, %.4g of %.4g GT/s", d->width, d->max_width, d->speed,
                d->max_speed);
    const bool narrow = d->width < d->max_width, slow = !gpu && d->speed < d->max_speed;
    if (narrow)
        check_judge(c, VERDICT_WARN,
                    "x%ld instead of x%ld: the slot has fewer lanes, shares them, or contacts are "
                    "dirty",
                    d->width, d->max_width);
    else if (slow)
        check_judge(c, VERDICT_WARN,
                    "%.4g instead of %.4g GT/s: the slot is of an older generation", d->speed,
                    d->max_speed);
    if (narrow || slow)
        check_mend(c,
                   "sudo lspci -vv -s %s | grep -E 'LnkCap|LnkSta'   # then another slot, or the "
                   "firmware's bifurcation",
                   d->address);
}

void check_pcie(const facts *f, checking *c)
{
    for (size_t i = 0; i < f->pci.gpu_count; i++)
        judge_slot(c, &f->pci.gpus[i], true);
    for (size_t i = 0; i < f->pci.adapter_count; i++)
        judge_slot(c, &f->pci.adapters[i], false);
}

static pci_distance between(const fact_pci *a, const fact_pci *b)
{
    return pci_distance_between(&a->place, &b->place);
}

static const fact_pci *nearest(const facts_pci *p, const fact_pci *gpu)
{
    const fact_pci *best = &p->adapters[0];
    for (size_t i = 1; i < p->adapter_count; i++)
        if (between(gpu, &p->adapters[i]) < between(gpu, best))
            best = &p->adapters[i];
    return best;
}

void check_distance(const facts *f, checking *c)
{
    for (size_t i = 0; i < f->pci.gpu_count && f->pci.adapter_count > 0; i++) {
        const fact_pci *gpu = &f->pci.gpus[i], *adapter = nearest(&f->pci, gpu);
        const pci_distance distance = between(gpu, adapter);
        check_found(c, gpu->address, "%s to %s", pci_distance_word(distance), adapter->address);
        if (distance != PCI_SYS)
            continue;
        check_judge(c, VERDICT_WARN,
                    "between them lies the link of two sockets (NUMA nodes %d and %d), which "
                    "GPUDirect crosses slowly",
                    gpu->place.numa, adapter->place.numa);
        check_mend(c, "nvidia-smi topo -m   # then move the adapter to a slot of node %d",
                   gpu->place.numa);
    }
}

/* ---- What redirects it ----------------------------------------------------------------------- */

static bool has_path(const facts *f)
{
    return f->pci.gpu_count > 0 && f->pci.adapter_count > 0;
}

void check_access_control(const facts *f, checking *c)
{
    const fact_bridge *on = NULL;
    size_t unknown = 0;
    if (!has_path(f) || f->pci.bridge_count == 0)
        return;
    for (size_t i = 0; i < f->pci.bridge_count; i++) {
        const fact_bridge *b = &f->pci.bridges[i];
        unknown += b->access_control < 0;
        on = on == NULL && b->access_control > 0 ? b : on;
    }
    if (on == NULL && unknown > 0) {
        check_nothing(c, NULL, "can be read by root only: sudo ringinfo doctor");
        return;
    }
    check_found(c, NULL, on != NULL ? "on at bridge %s" : "off%s", on != NULL ? on->address : "");
    if (on == NULL)
        return;
    check_judge(c, VERDICT_WARN,
                "access control sends what a GPU and an adapter exchange up to the processor and "
                "back, at half the speed or less");
    check_mend(c, "sudo setpci -s %s ECAP_ACS+6.w=0000   # after each start of the host",
               on->address);
}

void check_iommu(const facts *f, checking *c)
{
    if (!has_path(f))
        return;
    check_found(c, NULL, f->pci.translates ? "translates" : "off or passes through");
    if (!f->pci.translates)
        return;
    check_judge(c, VERDICT_WARN,
                "what a GPU and an adapter exchange is translated page by page by the processor's "
                "IOMMU");
    check_mend(c, "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && sudo "
                  "update-grub   # then restart the host");
}
