/* SPDX-License-Identifier: Apache-2.0
 * Lists the network interfaces with their addresses, in the kernel's order, and finds the address
 * at which other hosts can reach this one. */
#include "interface.h"
#include "sysfs.h"
#include "topo.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* @return the interface of @p entry, which is appended if it is new; NULL: no memory. */
static topo_interface *find_or_add(topo_net *net, const struct ifaddrs *entry)
{
    for (size_t i = 0; i < net->count; i++) {
        if (strcmp(net->interfaces[i].name, entry->ifa_name) == 0)
            return &net->interfaces[i];
    }
    topo_interface *more = realloc(net->interfaces, (net->count + 1) * sizeof *net->interfaces);
    if (more == NULL)
        return NULL;
    net->interfaces = more;
    topo_interface *found = &more[net->count++];
    *found = (topo_interface){.up = (entry->ifa_flags & IFF_UP) != 0 &&
                                    (entry->ifa_flags & IFF_RUNNING) != 0,
                              .loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0};
    snprintf(found->name, sizeof found->name, "%s", entry->ifa_name);
    found->mtu = (int)sysfs_number(-1, "/sys/class/net/%s/mtu", found->name);
    found->speed_mbits = sysfs_number(-1, "/sys/class/net/%s/speed", found->name);
    if (found->speed_mbits <= 0)
        found->speed_mbits = -1;
    return found;
}

/* Writes an address as text. @return false for a link-local IPv6 address, which is valid only with
 * a scope and so cannot be given to other hosts. */
static bool address_text(const struct sockaddr *address, char out[TOPO_ADDRESS_MAX])
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;
        return inet_ntop(AF_INET, &v4->sin_addr, out, TOPO_ADDRESS_MAX) != NULL;
    }
    const struct sockaddr_in6 *v6 = (const void *)address;
    return !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) &&
           inet_ntop(AF_INET6, &v6->sin6_addr, out, TOPO_ADDRESS_MAX) != NULL;
}

/* Adds the addresses of one family, AF_INET or AF_INET6, to their interfaces. */
static ring_status add_family(topo_net *net, const struct ifaddrs *list, int family)
{
    for (const struct ifaddrs *entry = list; entry != NULL; entry = entry->ifa_next) {
        topo_interface *interface = find_or_add(net, entry);
        if (interface == NULL)
            return fail(RING_ERR_MEMORY, "no memory to list the network interfaces");
        if (entry->ifa_addr == NULL || entry->ifa_addr->sa_family != family ||
            interface->address_count == TOPO_ADDRESSES)
            continue;
        interface->address_count += address_text(entry->ifa_addr,
                                                 interface->addresses[interface->address_count]);
    }
    return RING_OK;
}

ring_status topo_net_read(topo_net *net)
{
    struct ifaddrs *list;
    memset(net, 0, sizeof *net);
    if (getifaddrs(&list) != 0)
        return fail(RING_ERR_SYSTEM, "listing the network interfaces (getifaddrs): %m");
    ring_status status = add_family(net, list, AF_INET);
    if (status == RING_OK)
        status = add_family(net, list, AF_INET6);
    freeifaddrs(list);
    if (status != RING_OK)
        topo_net_free(net);
    return status;
}

void topo_net_free(topo_net *net)
{
    free(net->interfaces);
    memset(net, 0, sizeof *net);
}

const char *topo_net_public_address(const topo_net *net)
{
    struct sockaddr_storage chosen;
    char text[TOPO_ADDRESS_MAX];
    if (!interface_choose(INTERFACES_FOR_OTHERS, &chosen) ||
        !address_text((const struct sockaddr *)&chosen, text))
        return NULL;
    for (size_t i = 0; i < net->count; i++) {
        const topo_interface *interface = &net->interfaces[i];
        for (size_t k = 0; k < interface->address_count && !interface->loopback; k++) {
            if (strcmp(interface->addresses[k], text) == 0)
                return interface->addresses[k];
        }
    }
    return NULL;
}
