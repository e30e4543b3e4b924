/* SPDX-License-Identifier: Apache-2.0
 * Network interfaces, their networks, and what this host is called. */
#include "facts.h"

#include "interface.h"
#include "settings.h"
#include "sysfs.h"
#include "topo.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Interfaces ------------------------------------------------------------------------------ */

static long whole(const facts *f, const char *name, const char *file)
{
    const double value = facts_number(f, "/sys/class/net/%s/%s", name, file);
    return value > 0 ? (long)value : -1;
}

/* Ends of containers and bridges among them are no wires. */
static bool is_wire(const facts *f, const char *name)
{
    char path[128];
    return text_format(path, sizeof path, "/sys/class/net/%s/device", name) &&
           facts_exists(f, path);
}

static void take_interface(facts *f, const char *name, void *context)
{
    facts_net *n = &f->net;
    char flags[24];
    (void)context;
    if (n->count == FACTS_INTERFACES ||
        !facts_line(f, flags, sizeof flags, "/sys/class/net/%s/flags", name))
        return;
    const unsigned long bits = strtoul(flags, NULL, 16);
    fact_interface *i = &n->interfaces[n->count++];
    *i = (fact_interface){.enabled = (bits & IFF_UP) != 0,
                          .loopback = (bits & IFF_LOOPBACK) != 0,
                          .carrier = whole(f, name, "carrier") == 1,
                          .physical = is_wire(f, name),
                          .mtu = whole(f, name, "mtu"),
                          .speed = whole(f, name, "speed")};
    snprintf(i->name, sizeof i->name, "%.15s", name);
    facts_line(f, i->state, sizeof i->state, "/sys/class/net/%s/operstate", name);
    facts_line(f, i->duplex, sizeof i->duplex, "/sys/class/net/%s/duplex", name);
}

void facts_read_net_counters(facts *f, int reading)
{
    static const char *const files[] = {"rx_errors", "tx_errors"};
    for (size_t i = 0; i < f->net.count; i++) {
        fact_interface *one = &f->net.interfaces[i];
        one->errors[reading] = 0;
        for (size_t k = 0; k < 2; k++) {
            const double value = facts_number(f, "/sys/class/net/%s/statistics/%s", one->name,
                                              files[k]);
            one->errors[reading] += value > 0 ? value : 0;
        }
    }
}

/* ---- Networks: /proc/net/route, whose numbers are the addresses' bytes in memory ------------- */

static int mask_length(unsigned mask)
{
    return __builtin_popcount(mask);
}

static void add_subnet(facts_net *n, const char *name, unsigned network, unsigned mask)
{
    char text[INET_ADDRSTRLEN];
    for (size_t i = 0; i < n->count; i++) {
        fact_interface *one = &n->interfaces[i];
        if (strcmp(one->name, name) != 0 || one->subnet_count == FACTS_SUBNETS)
            continue;
        inet_ntop(AF_INET, &network, text, sizeof text);
        snprintf(one->subnets[one->subnet_count++], sizeof one->subnets[0], "%s/%d", text,
                 mask_length(mask));
    }
}

/* "eth0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0"; the default route is kept by its gateway.
 * @return true if it is the default one. */
static bool take_route(facts_net *n, const char *line, char name[16])
{
    unsigned network, gateway, mask;
    if (sscanf(line, "%15s %x %x %*s %*s %*s %*s %x", name, &network, &gateway, &mask) != 4)
        return false;
    if (gateway == 0 && mask != 0)
        add_subnet(n, name, network, mask);
    return mask == 0;
}

static void read_routes(facts *f)
{
    char line[1024], name[16];
    if (!text_format(line, sizeof line, "%s/proc/net/route", f->root))
        return;
    FILE *routes = fopen(line, "re");
    while (routes != NULL && fgets(line, sizeof line, routes) != NULL) {
        if (take_route(&f->net, line, name) && f->net.chosen[0] == '\0')
            memcpy(f->net.chosen, name, sizeof name);
    }
    if (routes != NULL)
        fclose(routes);
}

/* ---- Which one other hosts reach ------------------------------------------------------------- */

/* @return the interface of @p address; NULL. */
static const topo_interface *owner_of(const topo_net *net, const char *address)
{
    for (size_t i = 0; i < net->count; i++)
        for (size_t k = 0; k < net->interfaces[i].address_count; k++)
            if (strcmp(net->interfaces[i].addresses[k], address) == 0)
                return &net->interfaces[i];
    return NULL;
}

/* @return the setting's list of interfaces; "" if it is not set. */
static void read_wish(char wish[64])
{
    settings s;
    wish[0] = '\0';
    if (settings_read(&s) == RING_OK)
        text_format(wish, 64, "%s", s.interface);
}

static bool address_text(const struct sockaddr_storage *a, char out[64])
{
    const struct sockaddr_in *v4 = (const void *)a;
    const struct sockaddr_in6 *v6 = (const void *)a;
    const void *bytes = a->ss_family == AF_INET ? (const void *)&v4->sin_addr : &v6->sin6_addr;
    return inet_ntop(a->ss_family, bytes, out, 64) != NULL;
}

/* As ranks choose it; below a root nobody can ask the system, and the default route's is taken. */
static void choose(facts *f)
{
    topo_net net;
    struct sockaddr_storage address;
    char *text = f->net.address;
    read_wish(f->net.wish);
    if (*f->root != '\0' || topo_net_read(&net) != RING_OK)
        return;
    f->net.chosen[0] = '\0';
    const char *list = f->net.wish[0] != '\0' ? f->net.wish : INTERFACES_FOR_OTHERS;
    const bool found = interface_choose(list, &address) && address_text(&address, text);
    const topo_interface *owner = found ? owner_of(&net, text) : NULL;
    if (owner != NULL && (!owner->loopback || f->net.wish[0] != '\0'))
        snprintf(f->net.chosen, sizeof f->net.chosen, "%s", owner->name);
    else
        text[0] = '\0';
    topo_net_free(&net);
}

/* ---- The host's name ------------------------------------------------------------------------- */

/* "127.0.1.1  node1.example node1" @return true if it is the name's. */
static bool names_host(char *line, const char *name, char address[64])
{
    char *at = line;
    line[strcspn(line, "#\n")] = '\0';
    const char *first = strsep(&at, " \t");
    for (const char *word; (word = strsep(&at, " \t")) != NULL;) {
        if (strcmp(word, name) == 0)
            return text_format(address, 64, "%s", first);
    }
    return false;
}

static void read_own_address(facts *f)
{
    char line[1024];
    bool found = false;
    if (!text_format(line, sizeof line, "%s/etc/hosts", f->root))
        return;
    FILE *hosts = fopen(line, "re");
    while (hosts != NULL && !found && fgets(line, sizeof line, hosts) != NULL)
        found = names_host(line, f->net.hostname, f->net.own_address);
    if (hosts != NULL)
        fclose(hosts);
}

void facts_read_net(facts *f)
{
    f->net = (facts_net){.count = 0};
    facts_line(f, f->net.hostname, sizeof f->net.hostname, "/proc/sys/kernel/hostname");
    facts_each(f, take_interface, NULL, "/sys/class/net");
    read_routes(f);
    choose(f);
    read_own_address(f);
}
