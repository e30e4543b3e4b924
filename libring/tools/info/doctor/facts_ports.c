/* SPDX-License-Identifier: Apache-2.0
 * Ports of InfiniBand and RoCE adapters, as /sys/class/infiniband shows them to everybody. */
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "/sys/class/infiniband"

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

/* "4: ACTIVE" */
static void read_word(const facts *f, const fact_port *p, const char *file, char *out, size_t size)
{
    char line[64];
    facts_line(f, line, sizeof line, FOLDER "/%s/ports/%d/%s", p->device, p->number, file);
    const char *colon = strchr(line, ':');
    const char *word = colon != NULL ? colon + 1 + strspn(colon + 1, " ") : line;
    text_format(out, size, "%.*s", (int)size - 1, word);
}

static void take_gid(facts *f, const char *name, void *context)
{
    fact_port *p = context;
    char gid[48];
    if (p->gid_count == FACTS_GIDS ||
        !facts_line(f, gid, sizeof gid, FOLDER "/%s/ports/%d/gids/%s", p->device, p->number, name))
        return;
    if (strspn(gid, "0:") == strlen(gid) ||
        strcmp(gid, "fe80:0000:0000:0000:0000:0000:0000:0000") == 0)
        return; /* an empty place of the table */
    fact_gid *g = &p->gids[p->gid_count++];
    *g = (fact_gid){.index = (int)strtol(name, NULL, 10)};
    memcpy(g->gid, gid, sizeof gid);
    facts_line(f, g->type, sizeof g->type, FOLDER "/%s/ports/%d/gid_attrs/types/%s", p->device,
               p->number, name);
    facts_line(f, g->netdev, sizeof g->netdev, FOLDER "/%s/ports/%d/gid_attrs/ndevs/%s", p->device,
               p->number, name);
}

static void take_pkey(facts *f, const char *name, void *context)
{
    fact_port *p = context;
    char line[16];
    facts_line(f, line, sizeof line, FOLDER "/%s/ports/%d/pkeys/%s", p->device, p->number, name);
    const unsigned key = (unsigned)strtoul(line, NULL, 16);
    if (key != 0 && p->pkey_count < FACTS_PKEYS)
        p->pkeys[p->pkey_count++] = key;
}

/* "Global tclass=106", of Mellanox's drivers. */
static int read_traffic_class(const facts *f, const fact_port *p)
{
    char line[64];
    facts_line(f, line, sizeof line, FOLDER "/%s/tc/%d/traffic_class", p->device, p->number);
    const char *value = strstr(line, "tclass=");
    return value != NULL ? (int)strtol(value + 7, NULL, 10) : -1;
}

/* The last part of the path behind the link "device". */
static void read_pci(const facts *f, fact_port *p)
{
    char path[512], *real = NULL;
    if (text_format(path, sizeof path, "%s" FOLDER "/%s/device", f->root, p->device))
        real = realpath(path, NULL);
    const char *last = real != NULL ? strrchr(real, '/') + 1 : "";
    if (strchr(last, ':') != NULL)
        text_format(p->pci, sizeof p->pci, "%.15s", last);
    free(real);
}

static void take_port(facts *f, const char *name, void *context)
{
    if (f->port_count == FACTS_PORTS)
        return;
    fact_port *p = &f->ports[f->port_count++];
    *p = (fact_port){.number = (int)strtol(name, NULL, 10)};
    snprintf(p->device, sizeof p->device, "%.31s", (const char *)context);
    facts_line(f, p->model, sizeof p->model, FOLDER "/%s/hca_type", p->device);
    facts_line(f, p->board, sizeof p->board, FOLDER "/%s/board_id", p->device);
    facts_line(f, p->firmware, sizeof p->firmware, FOLDER "/%s/fw_ver", p->device);
    read_word(f, p, "state", p->state, sizeof p->state);
    read_word(f, p, "phys_state", p->phys_state, sizeof p->phys_state);
    read_word(f, p, "link_layer", p->link_layer, sizeof p->link_layer);
    read_word(f, p, "rate", p->rate, sizeof p->rate);
    char lid[24];
    facts_line(f, lid, sizeof lid, FOLDER "/%s/ports/%d/sm_lid", p->device, p->number);
    p->sm_lid = lid[0] != '\0' ? strtol(lid, NULL, 0) : -1;
    p->traffic_class = read_traffic_class(f, p);
    facts_each(f, take_gid, p, FOLDER "/%s/ports/%d/gids", p->device, p->number);
    facts_each(f, take_pkey, p, FOLDER "/%s/ports/%d/pkeys", p->device, p->number);
    read_pci(f, p);
}

static void take_device(facts *f, const char *name, void *context)
{
    char device[32];
    (void)context;
    snprintf(device, sizeof device, "%.31s", name);
    facts_each(f, take_port, device, FOLDER "/%s/ports", name);
}

void facts_read_ports(facts *f)
{
    f->port_count = 0;
    facts_each(f, take_device, NULL, FOLDER);
}

void facts_read_port_counters(facts *f, int reading)
{
    for (size_t i = 0; i < f->port_count; i++) {
        fact_port *p = &f->ports[i];
        for (size_t k = 0; k < FACTS_COUNTERS; k++)
            p->counters[reading][k] = facts_number(f, FOLDER "/%s/ports/%d/%s", p->device,
                                                   p->number, fact_counters[k]);
    }
}
