/* SPDX-License-Identifier: Apache-2.0
 * Reads /sys/class/net, /sys/class/infiniband, /sys/bus/pci and a few files of /proc and /etc, and
 * tests the active RDMA ports. */
#include "facts.h"

#ifdef RING_HAVE_VERBS
#include "adapter.h"
#include "transport.h"
#endif
#include "interface.h"
#include "settings.h"
#include "sysfs.h"
#include "topo.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NETS "%s/sys/class/net"
#define ADAPTERS "%s/sys/class/infiniband"
#define BUS "/sys/bus/pci/devices"

enum { PATH_BYTES = 1024 };

/* ---- Interfaces ------------------------------------------------------------------------------ */

static void take_interface(const char *name, void *context)
{
    facts *f = context;
    char flags[24];
    if (f->net.count == FACTS_INTERFACES ||
        !sysfs_line(flags, sizeof flags, NETS "/%s/flags", f->root, name))
        return;
    const unsigned long bits = strtoul(flags, NULL, 16);
    fact_interface *i = &f->net.interfaces[f->net.count++];
    *i = (fact_interface){.enabled = (bits & IFF_UP) != 0,
                          .loopback = (bits & IFF_LOOPBACK) != 0,
                          .carrier = sysfs_number(-1, NETS "/%s/carrier", f->root, name) == 1,
                          .physical = sysfs_exists(NETS "/%s/device", f->root, name),
                          .mtu = (long)sysfs_number(-1, NETS "/%s/mtu", f->root, name),
                          .speed = (long)sysfs_number(-1, NETS "/%s/speed", f->root, name)};
    snprintf(i->name, sizeof i->name, "%.15s", name);
    sysfs_line(i->duplex, sizeof i->duplex, NETS "/%s/duplex", f->root, name);
}

static fact_interface *find_interface(facts_net *n, const char *name)
{
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->interfaces[i].name, name) == 0)
            return &n->interfaces[i];
    return NULL;
}

/* Reads a route: "eth0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0", whose hexadecimal numbers are
 * addresses in memory order. The interface of the default route becomes the chosen one. */
static bool take_route(char *line, void *context)
{
    facts_net *n = context;
    char name[16], text[INET_ADDRSTRLEN];
    unsigned network, gateway, mask;
    if (sscanf(line, "%15s %x %x %*s %*s %*s %*s %x", name, &network, &gateway, &mask) != 4)
        return false;
    fact_interface *one = find_interface(n, name);
    if (mask == 0 && n->chosen == NULL)
        n->chosen = one;
    if (mask == 0 || gateway != 0 || one == NULL || one->subnet_count == FACTS_SUBNETS)
        return false;
    inet_ntop(AF_INET, &network, text, sizeof text);
    snprintf(one->subnets[one->subnet_count++], sizeof one->subnets[0], "%s/%d", text,
             __builtin_popcount(mask));
    return false;
}

/* @return the interface with this address, or NULL. */
static const topo_interface *owner_of(const topo_net *net, const char *address)
{
    for (size_t i = 0; i < net->count; i++)
        for (size_t k = 0; k < net->interfaces[i].address_count; k++)
            if (strcmp(net->interfaces[i].addresses[k], address) == 0)
                return &net->interfaces[i];
    return NULL;
}

/* Chooses the interface as ranks do. This asks the running system, so it is not called for a copied
 * tree, in which the interface of the default route stays chosen. */
static void choose(facts_net *n)
{
    topo_net net;
    struct sockaddr_storage at;
    const topo_interface *owner = NULL;
    const char *list = n->wish[0] != '\0' ? n->wish : INTERFACES_FOR_OTHERS;
    if (topo_net_read(&net) != RING_OK)
        return;
    if (interface_choose(list, &at) &&
        getnameinfo((const struct sockaddr *)&at, sizeof at, n->address, sizeof n->address, NULL, 0,
                    NI_NUMERICHOST) == 0)
        owner = owner_of(&net, n->address);
    const bool good = owner != NULL && (!owner->loopback || n->wish[0] != '\0');
    n->chosen = good ? find_interface(n, owner->name) : NULL;
    if (!good)
        n->address[0] = '\0';
    topo_net_free(&net);
}

/* Reads a line of /etc/hosts, such as "127.0.1.1  node1.example node1".
 * @return true if the line has this host's name; stores the address then. */
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

static void read_net(facts *f)
{
    facts_net *n = &f->net;
    sysfs_line(n->hostname, sizeof n->hostname, "%s/proc/sys/kernel/hostname", f->root);
    sysfs_each(take_interface, f, NETS, f->root);
    sysfs_find(take_route, n, "%s/proc/net/route", f->root);
    if (f->root[0] == '\0')
        choose(n);
    sysfs_find(names_host, n, "%s/etc/hosts", f->root);
}

/* ---- Ports ----------------------------------------------------------------------------------- */

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

/* Reads the word of a file such as "4: ACTIVE", without the number. */
static void read_word(const fact_port *p, const char *file, char *out, size_t size)
{
    char line[64];
    sysfs_line(line, sizeof line, "%s/%s", p->folder, file);
    const char *colon = strchr(line, ':');
    const char *word = colon != NULL ? colon + 1 + strspn(colon + 1, " ") : line;
    text_format(out, size, "%.*s", (int)size - 1, word);
}

static void take_gid(const char *name, void *context)
{
    static const char local[] = "fe80:0000:0000:0000:0000:0000:0000:0000";
    fact_port *p = context;
    fact_gid g = {.index = (int)strtol(name, NULL, 10)};
    if (p->gid_count == FACTS_GIDS ||
        !sysfs_line(g.gid, sizeof g.gid, "%s/gids/%s", p->folder, name) ||
        strspn(g.gid, "0:") == strlen(g.gid) || strcmp(g.gid, local) == 0)
        return; /* an empty entry of the table */
    sysfs_line(g.type, sizeof g.type, "%s/gid_attrs/types/%s", p->folder, name);
    sysfs_line(g.netdev, sizeof g.netdev, "%s/gid_attrs/ndevs/%s", p->folder, name);
    p->gids[p->gid_count++] = g;
}

static void take_pkey(const char *name, void *context)
{
    fact_port *p = context;
    char line[16];
    sysfs_line(line, sizeof line, "%s/pkeys/%s", p->folder, name);
    const unsigned key = (unsigned)strtoul(line, NULL, 16);
    if (key != 0 && p->pkey_count < FACTS_PKEYS)
        p->pkeys[p->pkey_count++] = key;
}

/* @return the largest MTU of InfiniBand whose packets fit the interface's MTU: RoCE v2 adds up to
 * 96 bytes of headers to a packet. */
static int fitting_mtu(long interface_mtu)
{
    enum { HEADERS = 96, LARGEST = 4096, SMALLEST = 256 };
    int mtu = LARGEST;
    while (mtu > SMALLEST && mtu + HEADERS > interface_mtu)
        mtu /= 2;
    return mtu;
}

/* Reads the PCI address of an adapter: the last component of the path to which the link "device"
 * points. */
static void read_address(const char *folder, fact_port *p)
{
    char path[PATH_BYTES];
    text_format(path, sizeof path, "%s/device", folder);
    char *real = realpath(path, NULL);
    const char *last = real != NULL ? strrchr(real, '/') + 1 : "";
    if (strchr(last, ':') != NULL)
        text_format(p->pci, sizeof p->pci, "%.15s", last);
    free(real);
}

/* @param folder  of the adapter. */
static void read_port(facts *f, const char *folder, fact_port *p)
{
    static const char class_key[] = "tclass="; /* Mellanox's drivers write "Global tclass=106" */
    char line[64];
    sysfs_line(p->model, sizeof p->model, "%s/hca_type", folder);
    sysfs_line(p->board, sizeof p->board, "%s/board_id", folder);
    sysfs_line(p->firmware, sizeof p->firmware, "%s/fw_ver", folder);
    sysfs_line(line, sizeof line, "%s/tc/%d/traffic_class", folder, p->number);
    const char *at = strstr(line, class_key);
    p->traffic_class = at != NULL ? (int)strtol(at + strlen(class_key), NULL, 10) : -1;
    p->sent_class = f->set_class > 0 ? f->set_class : p->traffic_class > 0 ? p->traffic_class : 0;
    read_address(folder, p);
    read_word(p, "state", p->state, sizeof p->state);
    read_word(p, "phys_state", p->phys_state, sizeof p->phys_state);
    read_word(p, "link_layer", p->link_layer, sizeof p->link_layer);
    read_word(p, "rate", p->rate, sizeof p->rate);
    sysfs_each(take_gid, p, "%s/gids", p->folder);
    sysfs_each(take_pkey, p, "%s/pkeys", p->folder);
    p->is_active = strcmp(p->state, "ACTIVE") == 0;
    p->is_roce = strcmp(p->link_layer, "Ethernet") == 0;
    for (size_t g = 0; g < p->gid_count && p->is_roce && p->net == NULL; g++)
        p->net = find_interface(&f->net, p->gids[g].netdev);
    p->mtu = p->net != NULL && p->net->mtu >= 0 ? fitting_mtu(p->net->mtu) : 0;
}

typedef struct adapter_of {
    facts *f;
    const char *name;
    char folder[PATH_BYTES];
} adapter_of;

static void take_port(const char *name, void *context)
{
    const adapter_of *a = context;
    if (a->f->port_count == FACTS_PORTS)
        return;
    fact_port *p = &a->f->ports[a->f->port_count++];
    p->number = (int)strtol(name, NULL, 10);
    snprintf(p->device, sizeof p->device, "%.31s", a->name);
    snprintf(p->name, sizeof p->name, "%.31s:%d", a->name, p->number);
    text_format(p->folder, sizeof p->folder, "%s/ports/%d", a->folder, p->number);
    read_port(a->f, a->folder, p);
}

static void take_adapter(const char *name, void *context)
{
    adapter_of a = {.f = context, .name = name};
    text_format(a.folder, sizeof a.folder, ADAPTERS "/%s", a.f->root, name);
    sysfs_each(take_port, &a, "%s/ports", a.folder);
}

/* ---- Places on the bus ----------------------------------------------------------------------- */

static void add_device(facts *f, const char *address, bool is_gpu)
{
    char folder[64], link[PATH_BYTES];
    text_format(folder, sizeof folder, BUS "/%.15s", address);
    text_format(link, sizeof link, "%s%s", f->root, folder);
    fact_pci *d = &f->pci.devices[f->pci.count++];
    *d = (fact_pci){
        .is_gpu = is_gpu,
        .place = pci_place_of(f->root, folder),
        .width = (long)sysfs_number(-1, "%s/current_link_width", link),
        .max_width = (long)sysfs_number(-1, "%s/max_link_width", link),
        .speed = sysfs_number(-1, "%s/current_link_speed", link),
        .max_speed = sysfs_number(-1, "%s/max_link_speed", link),
    };
    text_format(d->address, sizeof d->address, "%.15s", address);
}

/* Adds a device of the bus if it is a GPU of NVIDIA: a display controller (class 0x03) of the
 * vendor 0x10de. */
static void take_gpu(const char *name, void *context)
{
    facts *f = context;
    char class[24], vendor[24];
    sysfs_line(class, sizeof class, "%s" BUS "/%s/class", f->root, name);
    sysfs_line(vendor, sizeof vendor, "%s" BUS "/%s/vendor", f->root, name);
    if (f->pci.count < FACTS_GPUS && strncmp(class, "0x03", 4) == 0 &&
        strcmp(vendor, "0x10de") == 0)
        add_device(f, name, true);
}

/* Reads GPUs, then adapters. The ports of an adapter are consecutive and have the same PCI address,
 * which is added once. */
static void read_bus(facts *f)
{
    sysfs_line(f->pci.driver, sizeof f->pci.driver, "%s/proc/driver/nvidia/version", f->root);
    sysfs_each(take_gpu, f, "%s" BUS, f->root);
    f->pci.gpus = f->pci.count;
    for (size_t i = 0; i < f->port_count; i++)
        if (f->ports[i].pci[0] != '\0' &&
            (i == 0 || strcmp(f->ports[i].pci, f->ports[i - 1].pci) != 0))
            add_device(f, f->ports[i].pci, false);
}

/* ---- Ports in use -------------------------------------------------------------------------- */

/* Each active port sends to itself. Adapters that are made of software are not on a bus and get no
 * rate, since their speed depends on the processor. */
static void try_ports(facts *f)
{
#ifdef RING_HAVE_VERBS
    const adapter_port *ports;
    const int count = adapter_ports(&ports);
    for (int i = 0; i < count && i < FACTS_PORTS; i++) {
        fact_trial *t = &f->trials[f->trial_count++];
        transport_ib ib = TRANSPORT_IB_DEFAULTS;
        (void)text_format(t->port, sizeof t->port, "%s", ports[i].name);
        (void)text_format(ib.hca, sizeof ib.hca, "=%s", t->port);
        if (sysfs_exists("/sys/class/infiniband/%s/device", ports[i].device->name))
            t->rate = ports[i].rate;
        if (link_try(transport_find("verbs"), &ib, &t->measured) != RING_OK)
            (void)text_format(t->error, sizeof t->error, "%s", fail_text());
    }
    if (count > 0)
        return;
#else
    fail(RING_ERR_UNSUPPORTED,
         "libring was built without libibverbs; install libibverbs-dev and build again");
#endif
    (void)text_format(f->no_trial, sizeof f->no_trial, "%s", fail_text());
}

/* ---- All facts ------------------------------------------------------------------------------- */

/* @param reading  0 for the first reading, 1 for the last. */
static void read_counters(facts *f, int reading)
{
    for (size_t i = 0; i < f->net.count; i++) {
        fact_interface *one = &f->net.interfaces[i];
        one->errors[reading] = sysfs_number(0, NETS "/%s/statistics/rx_errors", f->root,
                                            one->name) +
                               sysfs_number(0, NETS "/%s/statistics/tx_errors", f->root, one->name);
    }
    for (size_t i = 0; i < f->port_count; i++)
        for (size_t k = 0; k < FACTS_COUNTERS; k++)
            f->ports[i].counters[reading][k] = sysfs_number(-1, "%s/%s", f->ports[i].folder,
                                                            fact_counters[k]);
}

void facts_read(facts *f)
{
    settings s;
    if (settings_read(&s) == RING_OK) {
        struct sockaddr_storage unused;
        if (interface_choose(s.interface, &unused) ||
            !settings_leave_out(&s, "RING_SOCKET_IFNAME", "no interface matches"))
            text_format(f->net.wish, sizeof f->net.wish, "%s", s.interface);
        f->set_class = s.ib.traffic_class;
    }
    f->container = sysfs_exists("%s/.dockerenv", f->root) ||
                   sysfs_exists("%s/run/.containerenv", f->root);
    sysfs_line(f->kernel, sizeof f->kernel, "%s/proc/sys/kernel/osrelease", f->root);
    read_net(f);
    sysfs_each(take_adapter, f, ADAPTERS, f->root);
    read_bus(f);
    read_counters(f, 0);
    if (f->root[0] == '\0') /* the adapters of a copied tree are not on this machine */
        try_ports(f);
    if (f->seconds > 0)
        clock_sleep(f->seconds);
    read_counters(f, 1);
}
