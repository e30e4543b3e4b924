/* SPDX-License-Identifier: Apache-2.0
 * Interfaces, and this host's name. */
#include "checks.h"

#include <stdio.h>
#include <string.h>

enum { SPEED_LOW = 1000 };

static void describe(checking *c, const fact_interface *i)
{
    char speed[40] = "speed not told";
    if (i->speed > 0)
        snprintf(speed, sizeof speed, "%.4g Gbit/s", (double)i->speed / 1000);
    check_found(c, i->name, "%s, %s%s%s, MTU %ld%s%s", i->carrier ? "up" : "down", speed,
                i->duplex[0] != '\0' ? ", duplex " : "", i->duplex, i->mtu,
                i->subnet_count > 0 ? ", " : "", i->subnet_count > 0 ? i->subnets[0] : "");
}

static void judge_interface(checking *c, const fact_interface *i)
{
    describe(c, i);
    if (!i->carrier) {
        check_judge(c, VERDICT_WARN,
                    "it is switched on and has no carrier: the cable, its other end or the "
                    "switch's port is off");
        check_mend(c,
                   "sudo ip link set %s down && sudo ip link set %s up   # else look at the "
                   "cable",
                   i->name, i->name);
    } else if (strcmp(i->duplex, "half") == 0) {
        check_judge(c, VERDICT_WARN, "half duplex: it cannot send while it receives");
        check_mend(c, "sudo ethtool -s %s autoneg on", i->name);
    } else if (i->speed > 0 && i->speed < SPEED_LOW) {
        check_judge(c, VERDICT_WARN,
                    "less than 1 Gbit/s: often a cable with a broken pair, or a port set by hand");
        check_mend(c, "sudo ethtool -s %s autoneg on   # else another cable", i->name);
    }
}

void check_interfaces(const facts *f, checking *c)
{
    for (size_t i = 0; i < f->net.count; i++) {
        const fact_interface *one = &f->net.interfaces[i];
        if (one->physical && one->enabled)
            judge_interface(c, one);
        else if (one->physical)
            check_nothing(c, one->name, "switched off");
    }
}

static const fact_interface *find(const facts *f, const char *name)
{
    for (size_t i = 0; i < f->net.count; i++)
        if (strcmp(f->net.interfaces[i].name, name) == 0)
            return &f->net.interfaces[i];
    return NULL;
}

/* Switched off ones are the first that one would switch on. */
static const char *first_off(const facts *f)
{
    for (size_t i = 0; i < f->net.count; i++)
        if (!f->net.interfaces[i].enabled && !f->net.interfaces[i].loopback)
            return f->net.interfaces[i].name;
    return NULL;
}

void check_chosen(const facts *f, checking *c)
{
    const fact_interface *chosen = find(f, f->net.chosen);
    if (chosen != NULL) {
        check_found(c, NULL, "%s%s%s", chosen->name, *f->net.address != '\0' ? ", " : "",
                    f->net.address);
        return;
    }
    check_found(c, NULL, "none");
    if (f->net.wish[0] != '\0') {
        check_judge(c, VERDICT_FAIL,
                    "RING_SOCKET_IFNAME=%s: no interface that is up and has an address matches",
                    f->net.wish);
        check_mend(c, "unset RING_SOCKET_IFNAME NCCL_SOCKET_IFNAME");
        return;
    }
    check_judge(c, VERDICT_WARN,
                "no interface that is up leads to other hosts: only ranks of this one can meet");
    const char *off = first_off(f);
    check_mend(c, "sudo ip link set %s up && sudo dhclient %s", off != NULL ? off : "eth0",
               off != NULL ? off : "eth0");
}

/* Debian has a line of its own for the name, whose address is to be changed; elsewhere the name
 * stands in the line of localhost, which it is taken out of. */
static void mend_hostname(const facts_net *n, checking *c)
{
    const char *address = *n->address != '\0' ? n->address : "ADDRESS";
    if (strcmp(n->own_address, "127.0.1.1") == 0)
        check_mend(c, "sudo sed -i 's/^127\\.0\\.1\\.1\\b/%s/' /etc/hosts", address);
    else
        check_mend(c,
                   "sudo sed -E -i '/^(127|::1)/s/\\s+%s(\\s|$)/\\1/' /etc/hosts && echo '%s %s' | "
                   "sudo tee -a /etc/hosts",
                   n->hostname, address, n->hostname);
}

void check_hostname(const facts *f, checking *c)
{
    const facts_net *n = &f->net;
    const bool loopback = strncmp(n->own_address, "127.", 4) == 0 ||
                          strcmp(n->own_address, "::1") == 0;
    check_found(c, NULL, "%s%s%s%s", n->hostname, *n->own_address != '\0' ? " is " : "",
                n->own_address, *n->own_address != '\0' ? " in /etc/hosts" : "");
    if (!loopback)
        return;
    check_judge(c, VERDICT_WARN,
                "the loopback: as MASTER_ADDR the name means another host on every host, and ranks "
                "elsewhere cannot connect to it");
    mend_hostname(n, c);
}

void check_net_errors(const facts *f, checking *c)
{
    for (size_t i = 0; i < f->net.count; i++) {
        const fact_interface *one = &f->net.interfaces[i];
        const double rise = one->errors[1] - one->errors[0];
        if (!one->physical || !one->enabled)
            continue;
        check_found(c, one->name, "%.0f%s", one->errors[1], rise > 0 ? " and rising" : "");
        if (rise <= 0)
            continue;
        check_judge(c, VERDICT_WARN,
                    "%.0f packets were damaged or lost by the interface in %.3g s: each costs a "
                    "retransmission",
                    rise, f->seconds);
        check_mend(c, "ip -s -s link show %s   # which errors; then another cable or port",
                   one->name);
    }
}
