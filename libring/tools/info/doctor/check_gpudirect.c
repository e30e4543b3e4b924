/* SPDX-License-Identifier: Apache-2.0
 * Checks the drivers and PCI slots of GPUs and adapters, and whether access control or an IOMMU
 * redirects the traffic between them. */
#include "check_gpudirect.h"

#include "sysfs.h"

#include <stdio.h>
#include <string.h>

static void check_gpus(checking *c)
{
    if (c->f->pci.gpus == 0)
        check_nothing(c, "no NVIDIA GPU on the PCI bus");
    for (size_t i = 0; i < c->f->pci.gpus; i++) {
        c->subject = c->f->pci.devices[i].address;
        check_found(c, "NUMA node %d", c->f->pci.devices[i].place.numa);
    }
}

static void check_driver(checking *c)
{
    const bool there = c->f->pci.driver[0] != '\0';
    if (c->f->pci.gpus == 0)
        return;
    check_found(c, "%s", there ? c->f->pci.driver : "none");
    if (!there)
        check_fail(c, "there are GPUs, but no driver: programs cannot use them",
                   "sudo apt install nvidia-driver && sudo modprobe nvidia");
}

/* Sets *context if @p name is a kernel module that exports GPU memory: their names begin with
 * nv_mem. */
static void take_client(const char *name, void *context)
{
    *(bool *)context |= strncmp(name, "nv_mem", 6) == 0;
}

/* Checks that adapters can access GPU memory. The open version of NVIDIA's driver exports it as
 * dma-buf and needs no other module. */
static void check_peer_memory(checking *c)
{
    const bool open = strstr(c->f->pci.driver, "Open Kernel Module") != NULL;
    bool loaded = sysfs_exists("%s/sys/module/nvidia_peermem", c->f->root);
    if (c->f->pci.gpus == 0 || c->f->port_count == 0 || c->f->pci.driver[0] == '\0')
        return;
    sysfs_each(take_client, &loaded, "%s/sys/kernel/mm/memory_peers", c->f->root);
    check_found(c, "%s", loaded ? "nvidia-peermem" : open ? "dma-buf" : "none");
    if (!loaded && !open)
        check_warn(c, "GPU data is copied through host memory, at a fraction of the speed",
                   "sudo modprobe nvidia-peermem && echo nvidia-peermem | sudo tee "
                   "/etc/modules-load.d/nvidia-peermem.conf");
}

/* Judges the PCIe link of a device. The speed of a GPU is not judged, since idle GPUs lower it;
 * they never lower the width. */
static void judge_slot(checking *c, const fact_pci *d)
{
    if (d->width <= 0 || d->max_width <= 0)
        return;
    c->subject = d->address;
    check_found(c, "x%ld of x%ld, %.4g of %.4g GT/s", d->width, d->max_width, d->speed,
                d->max_speed);
    if (d->width < d->max_width)
        check_judge(c, VERDICT_WARN,
                    "x%ld instead of x%ld: the slot has fewer or shared lanes, or is dirty",
                    d->width, d->max_width);
    else if (!d->is_gpu && d->speed < d->max_speed)
        check_judge(c, VERDICT_WARN,
                    "%.4g instead of %.4g GT/s: the slot has an older PCIe generation", d->speed,
                    d->max_speed);
    else
        return;
    check_command(c, "sudo lspci -vv -s %s | grep -E 'LnkCap|LnkSta'   # then another slot",
                  d->address);
}

/* Judges the slots of all GPUs and adapters. */
static void check_pcie(checking *c)
{
    for (size_t i = 0; i < c->f->pci.count; i++)
        judge_slot(c, &c->f->pci.devices[i]);
}

/* @return true if the host has both GPUs and adapters. */
static bool has_path(const facts *f)
{
    return f->pci.gpus > 0 && f->pci.count > f->pci.gpus;
}

/* Finds the nearest adapter of each GPU. */
static void check_distance(checking *c)
{
    const facts_pci *p = &c->f->pci;
    for (size_t i = 0; i < p->gpus && has_path(c->f); i++) {
        const fact_pci *gpu = &p->devices[i], *nearest = &p->devices[p->gpus];
        pci_distance least = pci_distance_between(&gpu->place, &nearest->place);
        for (size_t k = p->gpus + 1; k < p->count; k++) {
            const pci_distance here = pci_distance_between(&gpu->place, &p->devices[k].place);
            nearest = here < least ? &p->devices[k] : nearest;
            least = here < least ? here : least;
        }
        c->subject = gpu->address;
        check_found(c, "%s to %s", pci_distance_word(least), nearest->address);
        if (least != PCI_SYS)
            continue;
        check_judge(
            c, VERDICT_WARN,
            "the GPU is on NUMA node %d and the adapter on node %d, between which the link is slow",
            gpu->place.numa, nearest->place.numa);
        check_command(c, "nvidia-smi topo -m   # then move the adapter to a slot of node %d",
                      gpu->place.numa);
    }
}

enum { CONFIG_BYTES = 4096, EXTENDED_FROM = 0x100, ID_ACCESS_CONTROL = 0x0d, REDIRECT = 0x0c };

/* The bridges on the paths from the host's bridge to GPUs and adapters. */
typedef struct bridges {
    size_t count, unknown; /* unknown: bridges whose configuration cannot be read */
    char redirects[16];    /* the first bridge that redirects traffic to the host's bridge, or "" */
} bridges;

/* @return the little-endian number of 16 bits at an offset. */
static unsigned at16(const unsigned char *config, size_t at)
{
    return config[at] | (unsigned)config[at + 1] << 8;
}

/* Searches the list of extended capabilities for access control (ACS). An entry has its ID at byte
 * 0, the offset of the next entry in bits 4 to 15 at byte 2, and the control register of ACS at
 * byte 6.
 * @return 1 if the bridge redirects traffic between devices to the host's bridge, 0 if not, -1 if
 * that is unknown: without privileges, only the first 64 bytes of the configuration can be read. */
static int access_control(const facts *f, const char *address)
{
    unsigned char config[CONFIG_BYTES];
    char path[512];
    if (!text_format(path, sizeof path, "%s/sys/bus/pci/devices/%s/config", f->root, address))
        return -1;
    FILE *file = fopen(path, "re");
    const size_t size = file != NULL ? fread(config, 1, sizeof config, file) : 0;
    if (file != NULL)
        fclose(file);
    if (size < EXTENDED_FROM + 4)
        return -1;
    size_t at = EXTENDED_FROM;
    for (int turn = 0; turn < 64 && at >= EXTENDED_FROM && at + 8 <= size; turn++) {
        if (at16(config, at) == ID_ACCESS_CONTROL)
            return (at16(config, at + 6) & REDIRECT) != 0;
        at = at16(config, at + 2) >> 4;
    }
    return 0;
}

/* Examines all bridges on the path between the host's bridge and the device. */
static void examine_bridges(const facts *f, const fact_pci *d, bridges *b)
{
    char path[256], *rest = path;
    memcpy(path, d->place.path, sizeof path);
    strsep(&rest, "/");
    for (const char *part; rest != NULL && (part = strsep(&rest, "/")) != NULL && rest != NULL;) {
        const int control = access_control(f, part);
        b->count++;
        b->unknown += control < 0;
        if (control > 0 && b->redirects[0] == '\0')
            text_format(b->redirects, sizeof b->redirects, "%.15s", part);
    }
}

static void check_access_control(checking *c)
{
    bridges b = {.count = 0};
    for (size_t i = 0; i < c->f->pci.count; i++)
        examine_bridges(c->f, &c->f->pci.devices[i], &b);
    if (!has_path(c->f) || b.count == 0)
        return;
    if (b.redirects[0] != '\0') {
        check_found(c, "on at bridge %s", b.redirects);
        check_warn(
            c, "traffic between GPUs and adapters passes through the processor, at half the speed",
            "sudo setpci -s %s ECAP_ACS+6.w=0000   # after each start of the host", b.redirects);
    } else if (b.unknown > 0) {
        check_nothing(c, "only root can read this setting; run sudo ringinfo doctor");
    } else {
        check_found(c, "off");
    }
}

static void check_iommu(checking *c)
{
    char line[4096];
    sysfs_line(line, sizeof line, "%s/proc/cmdline", c->f->root);
    const bool on = strstr(line, "intel_iommu=on") != NULL ||
                    strstr(line, "amd_iommu=on") != NULL || strstr(line, "iommu=force") != NULL;
    const bool translates = on && strstr(line, "iommu=pt") == NULL &&
                            strstr(line, "iommu.passthrough=1") == NULL;
    if (!has_path(c->f))
        return;
    check_found(c, translates ? "translates" : "off or passes through");
    if (translates)
        check_warn(c, "the IOMMU translates traffic between GPUs and adapters page by page",
                   "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && sudo "
                   "update-grub   # then restart the host");
}

const check gpudirect_checks[] = {
    {OF_HOST, "gpudirect", "gpus", check_gpus},
    {OF_HOST, "gpudirect", "driver", check_driver},
    {OF_HOST, "gpudirect", "peer_memory", check_peer_memory},
    {OF_HOST, "gpudirect", "pcie", check_pcie},
    {OF_HOST, "gpudirect", "distance", check_distance},
    {OF_HOST, "gpudirect", "acs", check_access_control},
    {OF_HOST, "gpudirect", "iommu", check_iommu},
    {0},
};
