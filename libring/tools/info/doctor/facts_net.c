/* SPDX-License-Identifier: Apache-2.0
 * /sys/class/net, /proc/net/route and /etc/hosts; which interface others reach, the system says. */
#include "facts_net.h"

#include "facts_files.h"
#include "interface.h"
#include "settings.h"
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

static void take_interface(const facts *f, const char *name, void *context)
{
    facts_net *n = context;
    char flags[24];
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

static void add_subnet(facts_net *n, const char *name, unsigned network, unsigned mask)
{
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &network, text, sizeof text);
    for (size_t i = 0; i < n->count; i++) {
        fact_interface *one = &n->interfaces[i];
        if (strcmp(one->name, name) == 0 && one->subnet_count < FACTS_SUBNETS)
            snprintf(one->subnets[one->subnet_count++], sizeof one->subnets[0], "%s/%d", text,
                     __builtin_popcount(mask));
    }
}

/* "eth0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0"; the default route is kept by its interface.
 */
static bool take_route(char *line, void *context)
{
    facts_net *n = context;
    char name[16];
    unsigned network, gateway, mask;
    if (sscanf(line, "%15s %x %x %*s %*s %*s %*s %x", name, &network, &gateway, &mask) != 4)
        return false;
    if (mask == 0 && n->chosen[0] == '\0')
        memcpy(n->chosen, name, sizeof name);
    else if (mask != 0 && gateway == 0)
        add_subnet(n, name, network, mask);
    return false;
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
    settings s;
    struct sockaddr_storage address;
    char *text = f->net.address;
    if (settings_read(&s) == RING_OK)
        text_format(f->net.wish, sizeof f->net.wish, "%s", s.interface);
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
static bool names_host(char *line, void *context)
{
    facts_net *n = context;
    char *at = line;
    line[strcspn(line, "#\n")] = '\0';
    const char *first = strsep(&at, " \t");
    for (const char *word; (word = strsep(&at, " \t")) != NULL;)
        if (strcmp(word, n->hostname) == 0)
            return text_format(n->own_address, sizeof n->own_address, "%s", first);
    return false;
}

void facts_read_net(facts *f)
{
    f->net = (facts_net){.count = 0};
    facts_line(f, f->net.hostname, sizeof f->net.hostname, "/proc/sys/kernel/hostname");
    facts_each(f, take_interface, &f->net, "/sys/class/net");
    facts_find_line(f, take_route, &f->net, "/proc/net/route");
    choose(f);
    facts_find_line(f, names_host, &f->net, "/etc/hosts");
}
