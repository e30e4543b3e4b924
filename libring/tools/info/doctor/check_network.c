/* SPDX-License-Identifier: Apache-2.0
 * Checks the physical interfaces, the address that ranks would use, and the entry of /etc/hosts. */
#include "check_network.h"

#include <stdio.h>
#include <string.h>

enum { SPEED_LOW = 1000 };

static void judge_interface(checking *c, const fact_interface *i)
{
    char speed[40] = "speed unknown";
    if (i->speed > 0)
        snprintf(speed, sizeof speed, "%.4g Gbit/s", (double)i->speed / 1000);
    check_found(c, "%s, %s%s%s, MTU %ld%s%s", i->carrier ? "up" : "down", speed,
                i->duplex[0] != '\0' ? ", duplex " : "", i->duplex, i->mtu,
                i->subnet_count > 0 ? ", " : "", i->subnet_count > 0 ? i->subnets[0] : "");
    if (!i->carrier)
        check_warn(c,
                   "the interface is on but has no carrier: the cable is unplugged, or its other "
                   "end is off",
                   "sudo ip link set %s down && sudo ip link set %s up   # else check the cable",
                   i->name, i->name);
    else if (strcmp(i->duplex, "half") == 0)
        check_warn(c, "half duplex: it cannot send while it receives",
                   "sudo ethtool -s %s autoneg on", i->name);
    else if (i->speed > 0 && i->speed < SPEED_LOW)
        check_warn(c, "less than 1 Gbit/s: often a cable with a broken pair, or a port set by hand",
                   "sudo ethtool -s %s autoneg on   # else another cable", i->name);
}

static void check_links(checking *c)
{
    for (size_t k = 0; k < c->f->net.count; k++) {
        const fact_interface *i = &c->f->net.interfaces[k];
        c->subject = i->name;
        if (i->physical && i->enabled)
            judge_interface(c, i);
        else if (i->physical)
            check_nothing(c, "switched off");
    }
}

static void check_errors(checking *c)
{
    for (size_t k = 0; k < c->f->net.count; k++) {
        const fact_interface *i = &c->f->net.interfaces[k];
        const double rise = i->errors[1] - i->errors[0];
        c->subject = i->name;
        if (!i->physical || !i->enabled)
            continue;
        check_found(c, "%.0f%s", i->errors[1], rise > 0 ? " and rising" : "");
        if (rise <= 0)
            continue;
        check_judge(c, VERDICT_WARN,
                    "%.0f packets were damaged or lost in %.3g s: each costs a retransmission",
                    rise, c->f->seconds);
        check_command(c, "ip -s -s link show %s   # which errors; then another cable or port",
                      i->name);
    }
}

/* @return an interface that the user may switch on: the first one that is off, else "eth0". */
static const char *first_off(const facts_net *n)
{
    for (size_t i = 0; i < n->count; i++)
        if (!n->interfaces[i].enabled && !n->interfaces[i].loopback)
            return n->interfaces[i].name;
    return "eth0";
}

static void check_chosen(checking *c)
{
    const facts_net *n = &c->f->net;
    if (n->chosen != NULL) {
        check_found(c, "%s%s%s", n->chosen->name, *n->address != '\0' ? ", " : "", n->address);
        return;
    }
    check_found(c, "none");
    if (n->wish[0] != '\0') {
        check_judge(c, VERDICT_FAIL,
                    "RING_SOCKET_IFNAME=%s: no interface that is up and has an address matches",
                    n->wish);
        check_command(c, "unset RING_SOCKET_IFNAME NCCL_SOCKET_IFNAME");
        return;
    }
    check_warn(c, "no interface that is up leads to other hosts: only ranks of this host can join",
               "sudo ip link set %s up && sudo dhclient %s", first_off(n), first_off(n));
}

/* The command depends on /etc/hosts: Debian has a separate line for the name, whose address must be
 * changed. On other systems the name is in the line of localhost and must be removed from there. */
static void check_hostname(checking *c)
{
    const facts_net *n = &c->f->net;
    const bool known = *n->own_address != '\0';
    const char *address = *n->address != '\0' ? n->address : "ADDRESS";
    check_found(c, "%s%s%s%s", n->hostname, known ? " is " : "", n->own_address,
                known ? " in /etc/hosts" : "");
    if (strncmp(n->own_address, "127.", 4) != 0 && strcmp(n->own_address, "::1") != 0)
        return;
    check_judge(
        c, VERDICT_WARN,
        "a loopback address: with this name as MASTER_ADDR, each host would connect to itself");
    if (strcmp(n->own_address, "127.0.1.1") == 0)
        check_command(c, "sudo sed -i 's/^127\\.0\\.1\\.1\\b/%s/' /etc/hosts", address);
    else
        check_command(
            c,
            "sudo sed -E -i '/^(127|::1)/s/\\s+%s(\\s|$)/\\1/' /etc/hosts && echo '%s %s' | "
            "sudo tee -a /etc/hosts",
            n->hostname, address, n->hostname);
}

const check network_checks[] = {
    {OF_HOST, "network", "link", check_links},
    {OF_HOST, "network", "for_other_hosts", check_chosen},
    {OF_HOST, "network", "hostname", check_hostname},
    {OF_HOST, "network", "errors", check_errors},
    {0},
};
