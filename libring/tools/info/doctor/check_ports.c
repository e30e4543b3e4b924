/* SPDX-License-Identifier: Apache-2.0
 * Ports of adapters: whether they are up, how fast, and who may talk. */
#include "checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *check_port_name(const fact_port *p, char out[48])
{
    snprintf(out, 48, "%s:%d", p->device, p->number);
    return out;
}

bool check_is_roce(const fact_port *p)
{
    return strcmp(p->link_layer, "Ethernet") == 0;
}

const fact_interface *check_port_interface(const facts *f, const fact_port *p)
{
    for (size_t g = 0; g < p->gid_count && check_is_roce(p); g++)
        for (size_t i = 0; i < f->net.count; i++)
            if (strcmp(p->gids[g].netdev, f->net.interfaces[i].name) == 0)
                return &f->net.interfaces[i];
    return NULL;
}

bool check_is_active(const fact_port *p)
{
    return strcmp(p->state, "ACTIVE") == 0;
}

/* An empty second port is common; without any port there is nothing. */
static verdict of_dead_port(const facts *f)
{
    for (size_t i = 0; i < f->port_count; i++)
        if (check_is_active(&f->ports[i]))
            return VERDICT_WARN;
    return VERDICT_FAIL;
}

/* ---- Link and state -------------------------------------------------------------------------- */

static void mend_disabled(const facts *f, checking *c, const fact_port *p)
{
    const fact_interface *i = check_port_interface(f, p);
    if (i != NULL)
        check_mend(c, "sudo ip link set %s up", i->name);
    else if (check_is_roce(p))
        check_mend(c, "sudo ip link set $(ls /sys/class/infiniband/%s/device/net) up", p->device);
    else
        check_mend(c, "sudo ibportstate -C %s -D 0 %d enable   # of infiniband-diags", p->device,
                   p->number);
}

static void judge_link(const facts *f, checking *c, const fact_port *p)
{
    char name[48];
    check_found(c, check_port_name(p, name), "%s, %s", p->phys_state, p->link_layer);
    if (strcmp(p->phys_state, "LinkUp") == 0)
        return;
    if (strcmp(p->phys_state, "Disabled") == 0) {
        check_judge(c, of_dead_port(f), "the port is switched off");
        mend_disabled(f, c, p);
        return;
    }
    const bool polling = strcmp(p->phys_state, "Polling") == 0;
    check_judge(c, of_dead_port(f), "%s",
                polling ? "it looks for the other end of the cable and hears nothing: no cable, a "
                          "broken one, or the other end is off"
                        : "the physical link is not up");
    check_mend(c,
               "ethtool -m $(ls /sys/class/infiniband/%s/device/net | head -n 1)   # is a cable "
               "seen? plug it again, or try another",
               p->device);
}

void check_port_link(const facts *f, checking *c)
{
    if (f->port_count == 0)
        check_nothing(c, NULL, "no adapter in /sys/class/infiniband");
    for (size_t i = 0; i < f->port_count; i++)
        judge_link(f, c, &f->ports[i]);
}

static void judge_initializing(checking *c, const fact_port *p)
{
    if (check_is_roce(p)) {
        check_judge(c, VERDICT_FAIL, "the port is not ready");
        check_mend(c, "sudo ip link set $(ls /sys/class/infiniband/%s/device/net) up", p->device);
        return;
    }
    check_judge(c, VERDICT_FAIL,
                "no SM: the link is up, but no subnet manager has set up the network; one must run "
                "in a switch or on one of the hosts");
    check_mend(c, "sudo apt install opensm && sudo systemctl start opensm   # on one host");
}

static void judge_state(const facts *f, checking *c, const fact_port *p)
{
    char name[48];
    if (!check_is_active(p) && strcmp(p->phys_state, "LinkUp") != 0) {
        check_nothing(c, check_port_name(p, name), "%s, by its link", p->state);
        return;
    }
    check_found(c, check_port_name(p, name), "%s", p->state);
    if (check_is_active(p))
        return;
    if (strcmp(p->state, "INIT") == 0) {
        judge_initializing(c, p);
    } else if (strcmp(p->state, "ARMED") == 0) {
        check_judge(c, VERDICT_WARN, "the subnet manager has not finished with the port");
        check_mend(c, "sudo systemctl restart opensm   # where it runs");
    } else {
        check_judge(c, of_dead_port(f), "the port is not ACTIVE: nothing can be sent through it");
        mend_disabled(f, c, p);
    }
}

void check_port_state(const facts *f, checking *c)
{
    for (size_t i = 0; i < f->port_count; i++)
        judge_state(f, c, &f->ports[i]);
}

/* ---- Rate and MTU ---------------------------------------------------------------------------- */

static double rate_of(const fact_port *p)
{
    return strtod(p->rate, NULL);
}

/* The fastest active port of the same board: what this one could be. */
static double rate_of_sisters(const facts *f, const fact_port *p)
{
    double best = 0;
    for (size_t i = 0; i < f->port_count; i++) {
        const fact_port *other = &f->ports[i];
        if (check_is_active(other) && strcmp(other->model, p->model) == 0 &&
            strcmp(other->board, p->board) == 0 && rate_of(other) > best)
            best = rate_of(other);
    }
    return best;
}

static void judge_rate(const facts *f, checking *c, const fact_port *p)
{
    char name[48];
    const double best = rate_of_sisters(f, p);
    const bool infiniband = strcmp(p->link_layer, "InfiniBand") == 0;
    const bool narrow = infiniband && strstr(p->rate, "(1X") != NULL;
    const bool slow = infiniband && strstr(p->rate, " SDR)") != NULL;
    check_found(c, check_port_name(p, name), "%s", p->rate);
    if (narrow)
        check_judge(c, VERDICT_WARN, "one lane of four: the others did not come up");
    else if (slow)
        check_judge(c, VERDICT_WARN,
                    "SDR, the lowest speed there is: both ends fell back to it, which is not what "
                    "the adapter can do");
    else if (rate_of(p) < best)
        check_judge(c, VERDICT_WARN, "a port of the same board has %.4g Gb/s", best);
    else
        return;
    check_mend(c,
               "sudo ibportstate -C %s -D 0 %d reset   # of infiniband-diags; then another cable",
               p->device, p->number);
}

void check_port_rate(const facts *f, checking *c)
{
    for (size_t i = 0; i < f->port_count; i++)
        if (check_is_active(&f->ports[i]))
            judge_rate(f, c, &f->ports[i]);
}

/* RoCE v2 adds up to 96 bytes of headers to a packet. */
int check_active_mtu(long interface_mtu)
{
    enum { HEADERS = 96, LARGEST = 4096, SMALLEST = 256 };
    int mtu = LARGEST;
    while (mtu > SMALLEST && mtu + HEADERS > interface_mtu)
        mtu /= 2;
    return mtu;
}

void check_port_mtu(const facts *f, checking *c)
{
    enum { LARGEST = 4096, ROOM_MTU = 4200 };
    char name[48];
    for (size_t i = 0; i < f->port_count; i++) {
        const fact_interface *net = check_port_interface(f, &f->ports[i]);
        if (net == NULL || net->mtu < 0 || !check_is_active(&f->ports[i]))
            continue;
        const int mtu = check_active_mtu(net->mtu);
        check_found(c, check_port_name(&f->ports[i], name), "%d, by MTU %ld of %s", mtu, net->mtu,
                    net->name);
        if (mtu == LARGEST)
            continue;
        check_judge(c, VERDICT_WARN,
                    "ports can do %d: packets of %d cost more headers and more work for the "
                    "adapter",
                    LARGEST, mtu);
        check_mend(c,
                   "sudo ip link set %s mtu %d   # on all hosts, and the switch must let it pass",
                   net->name, ROOM_MTU);
    }
}

/* ---- Partitions ------------------------------------------------------------------------------ */

enum { FULL_MEMBER = 0x8000 };

static bool has_pkey(const fact_port *p, unsigned key)
{
    for (size_t i = 0; i < p->pkey_count; i++)
        if (p->pkeys[i] == key)
            return true;
    return false;
}

static void judge_pkeys(const facts *f, checking *c, const fact_port *p)
{
    char name[48];
    const unsigned full = f->pkey | FULL_MEMBER, limited = f->pkey & ~(unsigned)FULL_MEMBER;
    check_found(c, check_port_name(p, name), "%zu in the table, 0x%04x is %s", p->pkey_count, full,
                has_pkey(p, full)      ? "there"
                : has_pkey(p, limited) ? "there as a limited member"
                                       : "not there");
    if (has_pkey(p, full))
        return;
    if (has_pkey(p, limited))
        check_judge(c, VERDICT_WARN,
                    "two limited members of a partition cannot talk to each other");
    else
        check_judge(c, VERDICT_FAIL, "the port is not in the partition: its packets are dropped");
    check_mend(c,
               "echo 'ring=0x%04x, ipoib : ALL=full;' | sudo tee -a /etc/opensm/partitions.conf && "
               "sudo systemctl restart opensm   # where the subnet manager runs",
               limited);
}

void check_port_pkeys(const facts *f, checking *c)
{
    for (size_t i = 0; i < f->port_count; i++)
        if (check_is_active(&f->ports[i]))
            judge_pkeys(f, c, &f->ports[i]);
}

/* ---- Firmware and counters ------------------------------------------------------------------- */

void check_port_firmware(const facts *f, checking *c)
{
    for (size_t i = 0; i < f->port_count; i++) {
        const fact_port *p = &f->ports[i], *other = NULL;
        if (p->firmware[0] == '\0' || (i > 0 && strcmp(p->device, f->ports[i - 1].device) == 0))
            continue;
        check_found(c, p->device, "%s, %s", p->firmware, p->model);
        for (size_t k = 0; k < i && other == NULL; k++) {
            const bool same = strcmp(f->ports[k].board, p->board) == 0 &&
                              strcmp(f->ports[k].model, p->model) == 0;
            other = same && strcmp(f->ports[k].firmware, p->firmware) != 0 ? &f->ports[k] : NULL;
        }
        if (other == NULL)
            continue;
        check_judge(c, VERDICT_WARN, "%s has %s on the same board", other->device, other->firmware);
        check_mend(c, "sudo mstflint -d %s -i FIRMWARE.bin burn   # then restart the host", p->pci);
    }
}

static void judge_counters(const facts *f, checking *c, const fact_port *p)
{
    char name[48], risen[256] = "";
    size_t used = 0, known = 0;
    for (size_t k = 0; k < FACTS_COUNTERS; k++) {
        const double rise = p->counters[1][k] - p->counters[0][k];
        known += p->counters[0][k] >= 0;
        if (p->counters[0][k] >= 0 && rise > 0 && used < sizeof risen)
            used += (size_t)snprintf(risen + used, sizeof risen - used, "%s%s +%.0f",
                                     used > 0 ? ", " : "", strchr(fact_counters[k], '/') + 1, rise);
    }
    if (known == 0) {
        check_nothing(c, check_port_name(p, name), "the driver counts nothing");
        return;
    }
    check_found(c, check_port_name(p, name), "%s", used > 0 ? risen : "none rises");
    if (used == 0)
        return;
    check_judge(c, VERDICT_WARN,
                "in %.3g s; in a sound network none of them rises: symbol and link errors are "
                "cables, acknowledgements and sequences lost packets, rnr a receiver that is late",
                f->seconds);
    check_mend(c, "perfquery -C %s -P %d -x   # of infiniband-diags; then another cable or port",
               p->device, p->number);
}

void check_port_counters(const facts *f, checking *c)
{
    for (size_t i = 0; i < f->port_count && f->seconds > 0; i++)
        judge_counters(f, c, &f->ports[i]);
}
