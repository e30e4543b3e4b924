/* SPDX-License-Identifier: Apache-2.0
 * /sys/class/infiniband, which everybody may read, and /sys/bus/pci. */
#include "facts_devices.h"

#include "facts_files.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADAPTERS "/sys/class/infiniband"
#define BUS "/sys/bus/pci/devices"

const char *const fact_counters[FACTS_COUNTERS] = {
    "counters/symbol_error",
    "counters/link_error_recovery",
    "counters/link_downed",
    "counters/port_rcv_errors",
    "counters/port_xmit_discards",
    "counters/local_link_integrity_errors",
    "hw_counters/local_ack_timeout_err",
    "hw_counters/packet_seq_err",
    "hw_counters/rnr_nak_retry_err",
    "hw_counters/out_of_sequence",
    "hw_counters/req_cqe_error",
    "hw_counters/resp_cqe_error",
};

/* ---- Ports ----------------------------------------------------------------------------------- */

/* "4: ACTIVE" */
static void read_word(const facts *f, const fact_port *p, const char *file, char *out, size_t size)
{
    char line[64];
    facts_line(f, line, sizeof line, "%s/%s", p->folder, file);
    const char *colon = strchr(line, ':');
    const char *word = colon != NULL ? colon + 1 + strspn(colon + 1, " ") : line;
    text_format(out, size, "%.*s", (int)size - 1, word);
}

static void take_gid(const facts *f, const char *name, void *context)
{
    fact_port *p = context;
    char gid[48];
    if (p->gid_count == FACTS_GIDS ||
        !facts_line(f, gid, sizeof gid, "%s/gids/%s", p->folder, name))
        return;
    if (strspn(gid, "0:") == strlen(gid) ||
        strcmp(gid, "fe80:0000:0000:0000:0000:0000:0000:0000") == 0)
        return; /* an empty place of the table */
    fact_gid *g = &p->gids[p->gid_count++];
    *g = (fact_gid){.index = (int)strtol(name, NULL, 10)};
    memcpy(g->gid, gid, sizeof gid);
    facts_line(f, g->type, sizeof g->type, "%s/gid_attrs/types/%s", p->folder, name);
    facts_line(f, g->netdev, sizeof g->netdev, "%s/gid_attrs/ndevs/%s", p->folder, name);
}

static void take_pkey(const facts *f, const char *name, void *context)
{
    fact_port *p = context;
    char line[16];
    facts_line(f, line, sizeof line, "%s/pkeys/%s", p->folder, name);
    const unsigned key = (unsigned)strtoul(line, NULL, 16);
    if (key != 0 && p->pkey_count < FACTS_PKEYS)
        p->pkeys[p->pkey_count++] = key;
}

static const fact_interface *interface_of(const facts *f, const fact_port *p)
{
    for (size_t g = 0; g < p->gid_count && p->is_roce; g++)
        for (size_t i = 0; i < f->net.count; i++)
            if (strcmp(p->gids[g].netdev, f->net.interfaces[i].name) == 0)
                return &f->net.interfaces[i];
    return NULL;
}

/* The largest MTU of InfiniBand that fits the interface's: RoCE v2 adds up to 96 bytes of headers
 * to a packet. */
static int fitting_mtu(long interface_mtu)
{
    enum { HEADERS = 96, LARGEST = 4096, SMALLEST = 256 };
    int mtu = LARGEST;
    while (mtu > SMALLEST && mtu + HEADERS > interface_mtu)
        mtu /= 2;
    return mtu;
}

/* The setting is known by NCCL's name for it. @return -1 if it is not set. */
static int class_set(void)
{
    int value = -1;
    size_t count;
    settings_row *rows = settings_rows(&count);
    const char *text = getenv("NCCL_IB_TC");
    for (size_t i = 0; rows != NULL && i < count; i++)
        if (rows[i].nccl != NULL && strcmp(rows[i].nccl, "NCCL_IB_TC") == 0)
            text = rows[i].value;
    if (text != NULL && *text != '\0')
        value = (int)strtol(text, NULL, 10);
    free(rows);
    return value;
}

/* "Global tclass=106", of Mellanox's drivers. */
static void read_traffic_class(const facts *f, fact_port *p)
{
    char line[64];
    facts_line(f, line, sizeof line, ADAPTERS "/%s/tc/%d/traffic_class", p->device, p->number);
    const char *value = strstr(line, "tclass=");
    const int set = class_set();
    p->traffic_class = value != NULL ? (int)strtol(value + 7, NULL, 10) : -1;
    p->sent_class = set > 0 ? set : p->traffic_class > 0 ? p->traffic_class : 0;
}

/* The last part of the path behind the link "device". */
static void read_address(const facts *f, fact_port *p)
{
    char path[512], *real = NULL;
    if (text_format(path, sizeof path, "%s" ADAPTERS "/%s/device", f->root, p->device))
        real = realpath(path, NULL);
    const char *last = real != NULL ? strrchr(real, '/') + 1 : "";
    if (strchr(last, ':') != NULL)
        text_format(p->pci, sizeof p->pci, "%.15s", last);
    free(real);
}

static void read_files(const facts *f, fact_port *p)
{
    char lid[24];
    facts_line(f, p->model, sizeof p->model, ADAPTERS "/%s/hca_type", p->device);
    facts_line(f, p->board, sizeof p->board, ADAPTERS "/%s/board_id", p->device);
    facts_line(f, p->firmware, sizeof p->firmware, ADAPTERS "/%s/fw_ver", p->device);
    read_word(f, p, "state", p->state, sizeof p->state);
    read_word(f, p, "phys_state", p->phys_state, sizeof p->phys_state);
    read_word(f, p, "link_layer", p->link_layer, sizeof p->link_layer);
    read_word(f, p, "rate", p->rate, sizeof p->rate);
    facts_line(f, lid, sizeof lid, "%s/sm_lid", p->folder);
    p->sm_lid = lid[0] != '\0' ? strtol(lid, NULL, 0) : -1;
    read_traffic_class(f, p);
    read_address(f, p);
}

static void read_port(const facts *f, fact_port *p)
{
    read_files(f, p);
    facts_each(f, take_gid, p, "%s/gids", p->folder);
    facts_each(f, take_pkey, p, "%s/pkeys", p->folder);
    p->is_active = strcmp(p->state, "ACTIVE") == 0;
    p->is_roce = strcmp(p->link_layer, "Ethernet") == 0;
    p->net = interface_of(f, p);
    p->mtu = p->net != NULL && p->net->mtu >= 0 ? fitting_mtu(p->net->mtu) : 0;
}

typedef struct ports_of {
    facts *f;
    const char *device;
} ports_of;

static void take_port(const facts *f, const char *name, void *context)
{
    const ports_of *of = context;
    if (f->port_count == FACTS_PORTS)
        return;
    fact_port *p = &of->f->ports[of->f->port_count++];
    *p = (fact_port){.number = (int)strtol(name, NULL, 10)};
    snprintf(p->device, sizeof p->device, "%.31s", of->device);
    snprintf(p->name, sizeof p->name, "%.31s:%d", of->device, p->number);
    snprintf(p->folder, sizeof p->folder, ADAPTERS "/%.31s/ports/%d", of->device, p->number);
    read_port(f, p);
}

static void take_adapter(const facts *f, const char *name, void *context)
{
    facts_each(f, take_port, &(ports_of){context, name}, ADAPTERS "/%s/ports", name);
}

void facts_read_ports(facts *f)
{
    f->port_count = 0;
    facts_each(f, take_adapter, f, ADAPTERS);
}

void facts_read_port_counters(facts *f, int reading)
{
    for (size_t i = 0; i < f->port_count; i++)
        for (size_t k = 0; k < FACTS_COUNTERS; k++)
            f->ports[i].counters[reading][k] = facts_number(f, "%s/%s", f->ports[i].folder,
                                                            fact_counters[k]);
}

/* ---- Places ---------------------------------------------------------------------------------- */

static fact_pci read_device(const facts *f, const char *address)
{
    char folder[64];
    text_format(folder, sizeof folder, BUS "/%.15s", address);
    fact_pci d = {
        .width = (long)facts_number(f, BUS "/%s/current_link_width", address),
        .max_width = (long)facts_number(f, BUS "/%s/max_link_width", address),
        .place = pci_place_of(f->root, folder),
        .speed = facts_number(f, BUS "/%s/current_link_speed", address),
        .max_speed = facts_number(f, BUS "/%s/max_link_speed", address),
    };
    text_format(d.address, sizeof d.address, "%.15s", address);
    return d;
}

static bool is_gpu(const facts *f, const char *address)
{
    char class[24], vendor[24];
    facts_line(f, class, sizeof class, BUS "/%s/class", address);
    facts_line(f, vendor, sizeof vendor, BUS "/%s/vendor", address);
    return strncmp(class, "0x03", 4) == 0 && strcmp(vendor, "0x10de") == 0;
}

static void take_gpu(const facts *f, const char *name, void *context)
{
    facts_pci *p = context;
    if (p->gpu_count < FACTS_GPUS && is_gpu(f, name))
        p->gpus[p->gpu_count++] = read_device(f, name);
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

void facts_read_pci(facts *f)
{
    f->pci = (facts_pci){.gpu_count = 0};
    facts_line(f, f->pci.driver, sizeof f->pci.driver, "/proc/driver/nvidia/version");
    facts_each(f, take_gpu, &f->pci, BUS);
    read_adapters(f);
}
