/* SPDX-License-Identifier: Apache-2.0
 * Where GPUs and adapters are on the PCI bus, and the bridges above them. */
#include "facts.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "/sys/bus/pci/devices"

/* ---- Places ---------------------------------------------------------------------------------- */

static fact_pci read_device(const facts *f, const char *address)
{
    char folder[64];
    text_format(folder, sizeof folder, FOLDER "/%.15s", address);
    fact_pci d = {
        .width = (long)facts_number(f, FOLDER "/%s/current_link_width", address),
        .max_width = (long)facts_number(f, FOLDER "/%s/max_link_width", address),
        .place = pci_place_of(f->root, folder),
        .speed = facts_number(f, FOLDER "/%s/current_link_speed", address),
        .max_speed = facts_number(f, FOLDER "/%s/max_link_speed", address),
    };
    text_format(d.address, sizeof d.address, "%.15s", address);
    return d;
}

static bool is_gpu(const facts *f, const char *address)
{
    char class[24], vendor[24];
    facts_line(f, class, sizeof class, FOLDER "/%s/class", address);
    facts_line(f, vendor, sizeof vendor, FOLDER "/%s/vendor", address);
    return strncmp(class, "0x03", 4) == 0 && strcmp(vendor, "0x10de") == 0;
}

static void take_gpu(facts *f, const char *name, void *context)
{
    (void)context;
    if (f->pci.gpu_count < FACTS_GPUS && is_gpu(f, name))
        f->pci.gpus[f->pci.gpu_count++] = read_device(f, name);
}

static bool has_adapter(const facts_pci *p, const char *address)
{
    for (size_t i = 0; i < p->adapter_count; i++)
        if (strcmp(p->adapters[i].address, address) == 0)
            return true;
    return false;
}

/* Ports of one adapter share its place. */
static void read_adapters(facts *f)
{
    for (size_t i = 0; i < f->port_count; i++) {
        const char *address = f->ports[i].pci;
        if (*address != '\0' && !has_adapter(&f->pci, address))
            f->pci.adapters[f->pci.adapter_count++] = read_device(f, address);
    }
}

/* ---- Bridges --------------------------------------------------------------------------------- */

enum { CONFIG_BYTES = 4096, EXTENDED_FROM = 0x100, ID_ACCESS_CONTROL = 0x0d, REDIRECT = 0x0c };

static unsigned at16(const unsigned char *config, size_t at)
{
    return config[at] | (unsigned)config[at + 1] << 8;
}

/* The bits that send requests and completions between devices up to the host's bridge. Without
 * privilege only the first 64 bytes can be read. */
static int access_control(const facts *f, const char *address)
{
    unsigned char config[CONFIG_BYTES];
    char path[512];
    if (!text_format(path, sizeof path, "%s" FOLDER "/%s/config", f->root, address))
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

static bool has_bridge(const facts_pci *p, const char *address)
{
    for (size_t i = 0; i < p->bridge_count; i++)
        if (strcmp(p->bridges[i].address, address) == 0)
            return true;
    return false;
}

/* All parts of the path between the host's bridge and the device. */
static void take_bridges(facts *f, const fact_pci *d)
{
    char path[256], *rest = path;
    memcpy(path, d->place.path, sizeof path);
    strsep(&rest, "/");
    for (const char *part; rest != NULL && (part = strsep(&rest, "/")) != NULL;) {
        if (rest == NULL || f->pci.bridge_count == FACTS_BRIDGES || has_bridge(&f->pci, part))
            continue;
        fact_bridge *b = &f->pci.bridges[f->pci.bridge_count++];
        text_format(b->address, sizeof b->address, "%.15s", part);
        b->access_control = access_control(f, part);
    }
}

/* ---- Drivers --------------------------------------------------------------------------------- */

static void take_client(facts *f, const char *name, void *context)
{
    (void)context;
    f->pci.peer_memory = f->pci.peer_memory || strncmp(name, "nv_mem", 6) == 0;
}

static bool translates(const facts *f)
{
    char line[4096];
    facts_line(f, line, sizeof line, "/proc/cmdline");
    const bool on = strstr(line, "intel_iommu=on") != NULL ||
                    strstr(line, "amd_iommu=on") != NULL || strstr(line, "iommu=force") != NULL;
    return on && strstr(line, "iommu=pt") == NULL && strstr(line, "iommu.passthrough=1") == NULL;
}

void facts_read_pci(facts *f)
{
    f->pci = (facts_pci){.peer_memory = facts_exists(f, "/sys/module/nvidia_peermem"),
                         .translates = translates(f)};
    facts_line(f, f->pci.driver, sizeof f->pci.driver, "/proc/driver/nvidia/version");
    facts_each(f, take_client, NULL, "/sys/kernel/mm/memory_peers");
    facts_each(f, take_gpu, NULL, FOLDER);
    read_adapters(f);
    for (size_t i = 0; i < f->pci.gpu_count; i++)
        take_bridges(f, &f->pci.gpus[i]);
    for (size_t i = 0; i < f->pci.adapter_count; i++)
        take_bridges(f, &f->pci.adapters[i]);
}
